from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

import groupstorm
from groupstorm.broker.embedded import LoopThread
from groupstorm.clients.brokers import read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jvm import jvm
from groupstorm.testing import Broker
from groupstorm.testing.real import RealBroker
from tests.clients.share.members import SETTINGS, Members

TOPICS = {"orders": 6, "single": 1}
KAFKA = "4.4.0"


@pytest.fixture(scope="module", params=["emulator", pytest.param("kafka", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Kafka in a JVM, one for all tests of a file; None for the emulator, of which each test has its own."""
    pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")
    if request.param == "emulator":
        yield None
        return
    thread = LoopThread("kafka")
    thread.start()
    kafka = jvm(SETTINGS, KAFKA)
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


@asynccontextmanager
async def _members(address: str | None, faults: bool) -> AsyncIterator[Members]:
    """Topics, a group and its members; all of them go with the test. The emulator has three brokers."""
    broker: Broker = (
        groupstorm.broker(TOPICS, {**SETTINGS, "groupstorm.compatibility": KAFKA}, brokers=3)
        if address is None
        else RealBroker(read_kind(address), TOPICS, allow_writes=True, faults=faults)
    )
    async with broker:
        made = Members(broker)
        made.configure()
        try:
            yield made
        finally:
            await made.close()


@pytest.fixture
async def members(address: str | None) -> AsyncIterator[Members]:
    async with _members(address, faults=False) as made:
        yield made


@pytest.fixture
async def faulty(address: str | None) -> AsyncIterator[Members]:
    """Members whose broker can be made to fail, Kafka by a proxy."""
    async with _members(address, faults=True) as made:
        yield made
