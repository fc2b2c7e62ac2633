"""`CooperativeConsumer` in virtual time, in both protocols, and what is left of it when a simulation ends."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings

import pytest

from groupstorm.clients import CooperativeConsumer
from groupstorm.simulation import World, simulate
from groupstorm.testing import Ledger

RECORDS = 20


async def billing(servers: str, name: str, booked: list[bytes | None], protocol: str) -> None:
    async with CooperativeConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_protocol=protocol,
    ) as consumer:
        async for record in consumer:
            await asyncio.sleep(0.1)
            booked.append(record.value)
            await consumer.commit()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_record_is_booked_under_failures_and_nothing_complains_at_the_end(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()  # what other tests have left behind complains here
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def test(world: World) -> None:
        booked: list[bytes | None] = []
        for name in ("one", "two", "three"):
            arguments = (world.bootstrap_servers, name, booked, protocol)
            await world.start(billing, *arguments, name=name, restarts=True)
        for number in range(RECORDS):
            world.broker.produce("orders", str(number))
            await world.run_for(5)
        await world.run_for(150)
        assert {int(value or b"-1") for value in booked} == set(range(RECORDS))
        world.instances["one"].kill()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(4):
            simulate(test, seed=seed, topics={"orders": 6})
        gc.collect()
    assert complaints == []


async def batches(servers: str, name: str, ledger: Ledger) -> None:
    async with CooperativeConsumer(
        "orders", bootstrap_servers=servers, group_id="billing", client_id=name, auto_offset_reset="earliest"
    ) as consumer:
        while True:
            for records in (await consumer.getmany(timeout_ms=500, max_records=8)).values():
                for record in records:
                    with ledger.processing(record, by=name):
                        await asyncio.sleep(1)


def test_a_batch_that_fails_while_partitions_are_to_go_is_not_committed() -> None:
    """`one` gets its second batch while it joins again for `two`, and is stopped before it polls once more:
    the group waits for it to give up two partitions, which commits them."""

    async def test(world: World) -> None:
        async with Ledger(world.broker, "billing") as ledger:
            ledger.produce("orders", RECORDS)
            one = await world.start(batches, world.bootstrap_servers, "one", ledger)
            await world.until(lambda: ledger.processings)
            await world.start(batches, world.bootstrap_servers, "two", ledger)
            await world.until(lambda: ledger.processings == 9)
            await world.run_for(0.5)
            await one.stop()
            await world.group("billing").caught_up("orders", timeout_s=60)
            ledger.check()

    simulate(test, failures=(), topics={"orders": 4})
