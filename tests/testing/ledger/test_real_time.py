"""The ledger on brokers in real time: the emulator, and Kafka in a JVM (slow)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from tests.needs import needed

pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")

from groupstorm.testing import Broker
from groupstorm.testing.chosen import chosen_broker
from groupstorm.testing.ledger import Kind, Ledger, Report
from groupstorm.testing.real import SharedBrokers
from tests.testing.ledger.services import Service, careful, commits_first
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


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def played(
    broker: Broker,
    service: Service,
    happen: Callable[[Ledger, asyncio.Task[None]], Awaitable[None]],
    processed: int = RECORDS,
) -> Report:
    """The findings if one instance begins, something happens, and another one finishes."""
    async with Ledger(broker, "billing") as ledger:
        group = broker.group("billing")

        def start(name: str) -> asyncio.Task[None]:
            work = service(broker.bootstrap_servers, group.id, broker.topic("orders"), name, ledger)
            return asyncio.create_task(work)

        ledger.produce("orders", RECORDS)
        first = start("one")
        await happen(ledger, first)
        second = start("two")
        await group.caught_up("orders", timeout_s=PATIENCE_S)
        await until(lambda: ledger.report(over=False).processed == processed)
        await cancelled(first, second)
        return await asyncio.to_thread(ledger.report)


async def nothing(_ledger: Ledger, _one: asyncio.Task[None]) -> None:
    """Both instances work."""


async def test_a_careful_service_has_no_fault(broker: Broker) -> None:
    report = await played(broker, careful, nothing)
    assert report.faults == []
    assert report.processed == RECORDS


@pytest.mark.slow
async def test_a_service_that_commits_first(broker: Broker) -> None:
    """An instance that ends in the middle of a record has lost it."""

    async def end(ledger: Ledger, one: asyncio.Task[None]) -> None:
        def is_in_the_middle() -> bool:
            faults = ledger.report(over=False).faults
            return bool(faults) and "begins record" in "\n".join(ledger.report(over=False).history(faults[0]))

        await until(is_in_the_middle)
        await cancelled(one)

    report = await played(broker, commits_first, end, RECORDS - 1)
    assert {one.kind for one in report.faults} == {Kind.LOST, Kind.COMMITTED_FIRST}
    (lost,) = [one for one in report.faults if one.kind is Kind.LOST]
    story = "\n".join(report.history(lost))
    assert "one        begins record" in story
    assert "one        breaks off record" in story
    assert f"commits {lost.partition} up to offset {lost.offset + 1}" in story
