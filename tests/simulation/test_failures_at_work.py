"""Failures come while the service works, and the result says how many did."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer

from groupstorm.simulation import ScheduleFailed, World, simulate

PAYMENTS = 20


async def hasty(servers: str, booked: set[tuple[int, int]]) -> None:
    """Commits a payment before it books it: a crash in between loses it."""
    consumer = AIOKafkaConsumer(
        "payments",
        bootstrap_servers=servers,
        group_id="booking",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        async for record in consumer:
            await consumer.commit()
            await asyncio.sleep(0.1)
            booked.add((record.partition, record.offset))
    finally:
        await consumer.stop()


async def every_payment_is_booked(world: World) -> None:
    booked: set[tuple[int, int]] = set()
    for name in ("one", "two"):
        await world.start(hasty, world.bootstrap_servers, booked, name=name, restarts=True)
    world.broker.produce("payments", *["payment"] * PAYMENTS)
    await world.settle()
    assert len(booked) == PAYMENTS, "a payment is missing"


@pytest.mark.slow
def test_the_failures_of_a_few_schedules_find_a_commit_that_comes_too_early() -> None:
    with pytest.raises(ScheduleFailed, match="a payment is missing"):
        simulate(every_payment_is_booked, schedules=6, topics={"payments": 4})


def test_failures_behind_the_work_are_no_proof() -> None:
    with pytest.warns(UserWarning, match="120: no failure came while a group had records left, of 3 in 3"):
        run = simulate(every_payment_is_booked, schedules=3, within_s=120, topics={"payments": 4})
    assert (run.failures, run.at_work) == (3, 0)


def test_the_failures_of_all_schedules_are_counted() -> None:
    run = simulate(
        every_payment_is_booked, schedules=3, failures=["disconnect"], topics={"payments": 4}, processes=2
    )
    assert 0 < run.at_work <= run.failures
