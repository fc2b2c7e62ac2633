"""The ledger on brokers in real time: the emulator, and Kafka in a JVM (slow)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.needs import needed

pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")

from groupstorm.testing import Broker
from groupstorm.testing.chosen import chosen_broker
from groupstorm.testing.ledger import Ledger
from groupstorm.testing.real import SharedBrokers
from tests.testing.ledger.services import careful
from tests.waiting import until

RECORDS = 8
BROKERS = ["emulator", pytest.param("jvm", marks=pytest.mark.slow)]
PATIENCE_S = 60


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedBrokers]:
    brokers = SharedBrokers()
    yield brokers
    brokers.stop()


@pytest.fixture(params=BROKERS)
async def broker(request: pytest.FixtureRequest, shared: SharedBrokers) -> AsyncIterator[Broker]:
    settings = {"group.initial.rebalance.delay.ms": 0}
    arguments = {"topics": {"orders": 2}, "settings": settings}
    chosen = chosen_broker(request.param, arguments, shared=shared)
    with needed():
        await chosen.__aenter__()
    try:
        yield chosen
    finally:
        await chosen.__aexit__(None, None, None)


async def test_a_careful_service_has_no_fault(broker: Broker) -> None:
    """Two instances share the records. `test_virtual_time.py` has services with a fault."""
    async with Ledger(broker, "billing") as ledger:
        group = broker.group("billing")
        ledger.produce("orders", RECORDS)
        services = [
            asyncio.create_task(
                careful(broker.bootstrap_servers, group.id, broker.topic("orders"), name, ledger)
            )
            for name in ("one", "two")
        ]
        await group.caught_up("orders", timeout_s=PATIENCE_S)
        await until(lambda: ledger.report(over=False).processed == RECORDS)
        for service in services:
            service.cancel()
        await asyncio.gather(*services, return_exceptions=True)
        report = await asyncio.to_thread(ledger.report)
    assert report.faults == []
