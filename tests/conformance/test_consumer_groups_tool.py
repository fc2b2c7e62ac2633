"""Kafka's own kafka-consumer-groups on every broker: it prints what it prints on Kafka."""

from __future__ import annotations

import json

import pytest

from tests.client_libraries.conftest import checked
from tests.conformance import tool
from tests.conformance.backends import Backend
from tests.conformance.conftest import RecordProperty
from tests.conformance.programs.building import ProgramUnavailable

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("protocol", list(tool.FILES))
def test_what_kafka_consumer_groups_prints(
    backend: Backend, protocol: str, record_property: RecordProperty
) -> None:
    checked("confluent-kafka")
    try:
        said = tool.run(backend, protocol)
    except ProgramUnavailable as unavailable:
        pytest.skip(str(unavailable))
    record_property("said", json.dumps(said))
    for one, kafkas in zip(said, tool.read(protocol), strict=True):
        assert one == kafkas
