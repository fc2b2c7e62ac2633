from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from groupstorm.broker.loop_thread import LoopThread
from groupstorm.clients.brokers import read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.testing.real import RealBroker
from tests.clients.share.members import SETTINGS, Members


@pytest.fixture(scope="module", params=[pytest.param("4.4.0", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Kafka in a JVM, one for all tests of a file."""
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    thread = LoopThread("kafka")
    thread.start()
    kafka = jvm(SETTINGS, request.param)
    try:
        running = thread.run(kafka.__aenter__())
        try:
            yield running.address
        finally:
            thread.run(kafka.__aexit__(None, None, None))
    except BrokerUnavailable as missing:
        pytest.skip(str(missing))
    finally:
        thread.stop()


@pytest.fixture
async def members(address: str) -> AsyncIterator[Members]:
    """Topics, a group and its members; all of them go with the test."""
    async with RealBroker(read_kind(address), {"orders": 2, "single": 1}, allow_writes=True) as broker:
        made = Members(broker)
        try:
            yield made
        finally:
            await made.close()
