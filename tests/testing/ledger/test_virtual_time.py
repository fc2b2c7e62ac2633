"""The ledger in a simulation: services that keep their records, and services with one planted fault each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

import pytest

pytest.importorskip("aiokafka", reason="pip install aiokafka (extra `kafka`)")

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

import groupstorm
from groupstorm.problems import InputError
from groupstorm.simulation import ScheduleFailed, World, simulate
from groupstorm.simulation.instances import Instance
from groupstorm.testing.ledger import Allowed, Kind, Ledger, LedgerFailed, Report
from tests.testing.ledger.services import (
    Service,
    careful,
    commits_first,
    commits_late,
    consumer_of,
    goes_on,
)

SETTINGS = {"group.initial.rebalance.delay.ms": 0}


Happening = Callable[[World, Instance], Awaitable[object]]


async def nothing(_world: World, _one: Instance) -> None:
    """Nothing goes wrong."""


def after(seconds: float, act: Callable[[Instance], object]) -> Happening:
    """Do this to the first instance so long after the records were written."""

    async def happen(world: World, one: Instance) -> None:
        await world.run_for(seconds)
        done = act(one)
        if isawaitable(done):
            await done

    return happen


async def paused(world: World, one: Instance) -> None:
    """The first instance stands still for longer than its session lasts."""
    await world.run_for(1.3)
    one.pause()
    await world.run_for(10)
    one.resume()


async def cut_off(world: World, one: Instance) -> None:
    """The first instance reaches no broker for half a minute."""
    await world.run_for(2.2)
    world.partition(one)
    await world.run_for(30)
    world.heal(one)


def played(service: Service, happen: Happening = nothing, count: int = 12, **rules: Any) -> Report:
    """The findings if two instances process some records, and something happens to the first instance."""
    found: list[Report] = []

    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing", **rules) as ledger:
            first, _ = [
                await world.start(
                    service,
                    world.bootstrap_servers,
                    "billing",
                    "orders",
                    name,
                    ledger,
                    name=name,
                    restarts=True,
                )
                for name in ("one", "two")
            ]
            await world.group("billing").stable(members=2, partitions=2)
            ledger.produce("orders", count)
            await happen(world, first)
            await world.run_for(60)
            found.append(ledger.report())

    simulate(test, topics={"orders": 2}, settings=SETTINGS, failures=())
    return found[0]


def kinds(report: Report) -> set[Kind]:
    return {one.kind for one in report.faults}


def shortest(report: Report, kind: Kind) -> list[str]:
    """Who did what in the shortest history of a kind, without times."""
    finding = min((one for one in report.faults if one.kind is kind), key=lambda one: len(one.shown_by))
    return [" ".join(line.split()[2:]) for line in report.history(finding)]


def test_a_careful_service_has_no_fault() -> None:
    report = played(careful)
    assert report.findings == ()
    assert report.lines() == ["12 of 12 records processed; nothing was lost"]


def test_a_crash_before_a_commit_doubles_a_record_and_at_least_once_allows_it() -> None:
    report = played(commits_late, after(0.45, lambda one: one.kill()))
    assert [(one.kind, one.allowed) for one in report.findings] == [(Kind.TWICE, Allowed.YES)]
    assert report.lines() == ["12 of 12 records processed, 1 again as at-least-once allows; nothing was lost"]


def test_a_record_in_hand_may_be_finished_when_the_partition_has_gone() -> None:
    """The session of the first instance ends in the middle of a record."""
    report = played(careful, paused)
    assert report.faults == []
    assert {one.allowed for one in report.findings} == {Allowed.YES, Allowed.UNNOTICED}


def test_the_ledger_can_be_strict_about_it() -> None:
    assert kinds(played(careful, paused, notice_s=None)) == {Kind.TWO_AT_ONCE}


def test_a_record_that_is_committed_first_has_not_been_processed_yet() -> None:
    report = played(commits_first)
    assert kinds(report) == {Kind.COMMITTED_FIRST}
    assert len(report.faults) == 12
    assert shortest(report, Kind.COMMITTED_FIRST) == [
        "ledger puts record 0 into orders-0 at offset 0",
        "one gets orders-0",
        "one commits orders-0 up to offset 1",
        "one begins record 0 (orders-0, offset 0)",
        "one has processed record 0 (orders-0, offset 0)",
    ]


def test_a_record_that_is_committed_first_is_lost_if_the_instance_dies() -> None:
    report = played(commits_first, after(0.45, lambda one: one.kill()))
    assert kinds(report) == {Kind.COMMITTED_FIRST, Kind.LOST}
    assert shortest(report, Kind.LOST) == [
        "ledger puts record 2 into orders-0 at offset 1",
        "one gets orders-0",
        "one commits orders-0 up to offset 2",
        "one begins record 2 (orders-0, offset 1)",
    ]


def test_an_instance_that_goes_on_processes_beside_the_new_owner() -> None:
    """It is cut off from the brokers in the middle of a batch, and works on."""
    report = played(goes_on, cut_off, count=40)
    assert Kind.TWO_AT_ONCE in kinds(report)
    begun = [line.split()[0] for line in shortest(report, Kind.TWO_AT_ONCE) if " begins " in line]
    assert set(begun) == {"one", "two"}


def test_an_instance_may_have_another_name_than_its_client() -> None:
    """Clients have one client.id each unless somebody names them: a partition goes away and comes back."""

    async def unnamed(servers: str, name: str, ledger: Ledger) -> None:
        async with consumer_of(servers, "billing", "orders", "aiokafka") as consumer:
            async for record in consumer:
                with ledger.processing(record, by=name):
                    await asyncio.sleep(0.1)
                await consumer.commit()

    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            for members, name in enumerate(("one", "two"), start=1):
                latest = await world.start(unnamed, world.bootstrap_servers, name, ledger, name=name)
                await world.group("billing").stable(members=members, partitions=2)
                ledger.produce("orders", 8)
                await world.run_for(5)
            await latest.stop()
            await world.run_for(5)
            ledger.produce("orders", 8)
            await world.run_for(5)
            assert ledger.check().lines() == ["24 of 24 records processed; nothing was lost"]

    simulate(test, topics={"orders": 2}, settings=SETTINGS, failures=())


def test_offsets_of_an_aborted_transaction_are_no_commit() -> None:
    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            ledger.produce("orders", 2, partition=0)
            async with AIOKafkaProducer(
                bootstrap_servers=world.bootstrap_servers, transactional_id="billing"
            ) as producer:
                for offset, end in ((2, producer.abort_transaction), (1, producer.commit_transaction)):
                    await producer.begin_transaction()
                    offsets = {TopicPartition("orders", 0): offset}
                    await producer.send_offsets_to_transaction(offsets, "billing")
                    await end()
            found = {one.offset: one.kind for one in ledger.report().faults}
            assert found == {0: Kind.LOST, 1: Kind.UNPROCESSED}

    simulate(test, topics={"orders": 1}, settings=SETTINGS, failures=())


def test_what_was_committed_in_a_topic_counts_when_it_is_deleted() -> None:
    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            one = await world.start(
                careful, world.bootstrap_servers, "billing", "orders", "one", ledger, name="one"
            )
            ledger.produce("orders", 4)
            await world.group("billing").caught_up("orders")
            await one.stop()
            admin = AIOKafkaAdminClient(bootstrap_servers=world.bootstrap_servers)
            await admin.start()
            await admin.delete_topics(["orders"])
            await admin.close()
            assert world.group("billing").committed() == {}
            assert ledger.check().processed == 4

    simulate(test, topics={"orders": 1}, settings=SETTINGS, failures=())


def test_the_end_is_not_in_sight_if_the_run_goes_on() -> None:
    """Records that wait are findings only if nobody will process them any more."""

    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            ledger.produce("orders", 3)
            assert ledger.check(over=False).processed == 0
            with pytest.raises(LedgerFailed, match="not processed: 3 records"):
                ledger.check()

    simulate(test, topics={"orders": 2}, failures=())


async def two_of(service: Service, world: World, ledger: Ledger) -> None:
    """Two processes of the service work on forty records until all is done."""
    for name in ("one", "two"):
        given = (world.bootstrap_servers, "billing", "orders", name, ledger)
        await world.start(service, *given, name=name, restarts=True)
    for _ in range(20):
        ledger.produce("orders", 2)
        await world.run_for(2)
    await world.run_for(120)


@pytest.mark.slow
def test_no_schedule_of_failures_makes_a_careful_service_lose_records() -> None:
    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            await two_of(careful, world, ledger)
            ledger.check()

    simulate(test, schedules=12, topics={"orders": 2}, settings=SETTINGS, within_s=40)


@pytest.mark.slow
def test_a_schedule_finds_what_committing_first_loses() -> None:
    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            await two_of(commits_first, world, ledger)
            report = ledger.report()
            assert Kind.LOST not in {one.kind for one in report.faults}, "\n".join(report.lines())

    with pytest.raises(ScheduleFailed, match="lost: 1 record") as failed:
        simulate(test, schedules=20, topics={"orders": 2}, settings=SETTINGS, within_s=40)
    assert len(failed.value.schedule.happenings) == 1


def test_a_group_that_commits_nothing_is_told() -> None:
    """Every double of such a group is allowed: perhaps the application has another group.id."""
    with groupstorm.broker({"orders": 1}) as broker, Ledger(broker, "biling") as ledger:
        ledger.produce("orders", 2)
        for number in (0, 1, 1):
            ledger.processed(number)
        assert ledger.check().lines() == [
            "2 of 2 records processed, 1 again as at-least-once allows; nothing was lost;"
            " the group committed nothing"
        ]


@pytest.mark.parametrize("value", ["7", b"7", None])
def test_a_value_is_no_record(value: object) -> None:
    expected = r"^record: .*: expected the number of a record, or a record of a consumer"
    with groupstorm.broker({"orders": 1}) as broker, pytest.raises(InputError, match=expected):
        Ledger(broker, "billing").processed(value)


def test_a_check_of_records_that_nobody_counts_is_no_check() -> None:
    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            with pytest.raises(InputError, match=r"no record is counted: expected ledger\.produce or"):
                ledger.check()
            world.broker.produce("orders", "one")
            (record,) = world.broker.records("orders")
            ledger.processed(record)
            with pytest.raises(InputError, match="no record is counted"):
                ledger.check()

    simulate(test, topics={"orders": 1}, failures=())
