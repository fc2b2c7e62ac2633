"""`CooperativeConsumer` in virtual time, in both protocols, and what is left of it when a simulation ends."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings

import pytest

from groupstorm.clients import CooperativeConsumer
from groupstorm.simulation import World, simulate

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
