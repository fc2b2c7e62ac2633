"""A service with aiokafka that commits each record after it has booked it, and the scenario of the tests."""

from __future__ import annotations

import asyncio
import hashlib

from aiokafka import AIOKafkaConsumer

from groupstorm.simulation import World
from groupstorm.simulation.schedule import Kind, drawn
from groupstorm.simulation.simulate import Options, Run, run_once

SETTINGS = {"group.initial.rebalance.delay.ms": 0}
RECORDS = 24


async def billing(servers: str, name: str, booked: list[str]) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        async for record in consumer:
            await asyncio.sleep(0.05)
            booked.append(f"{name} {record.partition} {record.offset}")
            await consumer.commit()
    finally:
        await consumer.stop()


async def rolling_restart(world: World, booked: list[str]) -> None:
    """Three instances restart one after the other while there are records to book."""
    world.broker.create_topic("orders", 6)
    instances = [
        await world.start(billing, world.bootstrap_servers, name, booked, name=name, restarts=True)
        for name in ("one", "two", "three")
    ]
    await world.run_for(10)
    world.broker.produce("orders", *(f"order-{number}" for number in range(RECORDS)))
    for instance in instances:
        await instance.restart()
        await world.run_for(20)
    await world.settle()


def played(seed: int) -> tuple[Run, list[str]]:
    """The scenario under the schedule of a seed."""
    booked: list[str] = []
    schedule = drawn(seed, list(Kind), 60_000_000)
    run = run_once(lambda world: rolling_restart(world, booked), schedule, Options(settings=SETTINGS))
    return run, booked


def digest(seeds: range) -> str:
    """A checksum of everything that can be observed in the runs of these seeds."""
    found = hashlib.sha256()
    for seed in seeds:
        run, booked = played(seed)
        found.update(repr((list(run.trace), run.told, run.end_us, run.problem, booked)).encode())
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(range(3)))
