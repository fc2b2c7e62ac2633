from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.client_libraries.members import TOPIC

MODULES = {"aiokafka": "aiokafka", "confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}
PARTITIONS = 6


@pytest.fixture(params=sorted(MODULES))
def library(request: pytest.FixtureRequest) -> str:
    """Each client library in turn."""
    return checked(request.param)


def checked(library: str) -> str:
    if importlib.util.find_spec(MODULES[library]) is None:
        pytest.skip(f"pip install {library} (extra `kafka`)")
    return library


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """A broker without an initial rebalance delay: these tests wait for rounds."""
    with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}, {TOPIC: PARTITIONS}) as running:
        yield running
