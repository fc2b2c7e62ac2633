from __future__ import annotations

from collections.abc import Iterator

import pytest

from groupstorm.coordinator.server.embedded import EmbeddedBroker
from tests.server.desk import Desk
from tests.server.wire import RawClient

INITIAL_DELAY_MS = 50


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    options = {
        "group.initial.rebalance.delay.ms": str(INITIAL_DELAY_MS),
        "socket.request.max.bytes": "100000",
    }
    with EmbeddedBroker(options, {"orders": 3}) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient((broker.host, broker.port)) as connected:
        yield connected


@pytest.fixture
def desk() -> Desk:
    """Groups form as soon as time passes."""
    return Desk({"group.initial.rebalance.delay.ms": "0"}, {"orders": 3})
