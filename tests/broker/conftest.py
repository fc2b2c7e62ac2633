from __future__ import annotations

from collections.abc import Iterator

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from tests.broker.driver import Driver
from tests.broker.wire import RawClient

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
def driver() -> Driver:
    """A broker without an initial rebalance delay."""
    return Driver({"group.initial.rebalance.delay.ms": "0"}, {"orders": 3})
