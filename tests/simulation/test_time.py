"""Virtual time passes wherever real time would."""

from __future__ import annotations

import asyncio
import time

from aiokafka import AIOKafkaConsumer

from groupstorm.simulation import World, simulate
from tests.simulation.billing import SETTINGS


def test_a_wait_for_no_time_at_all_still_takes_some() -> None:
    """Code that waits until a deadline with ``now > deadline`` asks again at the very deadline."""
    waits_s: list[float] = []

    async def test(_world: World) -> None:
        deadline_s = time.monotonic() + 5
        while not time.monotonic() > deadline_s:
            waits_s.append(max(0, deadline_s - time.monotonic()))
            never = asyncio.get_running_loop().create_future()
            await asyncio.wait([never], timeout=waits_s[-1])

    simulate(test, failures=())
    assert waits_s[-1] < 0.000_001
    assert len(waits_s) <= 3


def test_aiokafka_commits_by_itself() -> None:
    """Its loop asks for no time at all at the instant of a commit."""
    offsets: list[int | None] = []

    async def service(servers: str) -> None:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            async for _ in consumer:
                pass
        finally:
            await consumer.stop()

    async def test(world: World) -> None:
        world.broker.produce("orders", "one", "two")
        await world.start(service, world.bootstrap_servers)
        await world.run_for(30)
        offsets.append(world.group("billing").committed("orders", 0))

    simulate(test, failures=(), topics={"orders": 1}, settings=SETTINGS, schedules=3, processes=1)
    assert offsets[-1] == 2
