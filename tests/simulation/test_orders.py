"""examples/orders under schedules of failures: which version of the service loses orders?"""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer

from examples.orders.service import FirstOrderService, OrderService
from groupstorm.simulation import Kind, ScheduleFailed, World, simulate

ORDERS = [f"order-{number}" for number in range(40)]
FAILURES = (Kind.RESTART, Kind.MOVE_COORDINATOR, Kind.DISCONNECT)
ARGUMENTS = {"topics": {"orders": 4}, "failures": FAILURES, "within_s": 60}


async def run_service(kind: type[FirstOrderService], servers: str, name: str, booked: list[str]) -> None:
    async def book(order: str) -> None:
        await asyncio.sleep(2)
        booked.append(order)

    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id="booking",
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    service = kind(consumer, "orders", book)
    try:
        await service.start()
        await asyncio.get_running_loop().create_future()
    finally:
        await service.stop()


async def no_order_is_lost(world: World, kind: type[FirstOrderService]) -> None:
    booked: list[str] = []
    for name in ("one", "two"):
        await world.start(run_service, kind, world.bootstrap_servers, name, booked, name=name, restarts=True)
    for order in ORDERS:
        world.broker.produce("orders", order)
        await world.run_for(1)
    await world.run_for(120)
    assert set(ORDERS) - set(booked) == set(), "orders were lost"


@pytest.mark.slow
def test_schedules_find_that_the_first_version_loses_orders() -> None:
    with pytest.raises(ScheduleFailed, match="orders were lost") as failed:
        simulate(lambda world: no_order_is_lost(world, FirstOrderService), schedules=10, **ARGUMENTS)  # type: ignore[arg-type]
    assert len(failed.value.schedule.happenings) <= 1


@pytest.mark.slow
def test_the_mended_version_loses_none() -> None:
    simulate(lambda world: no_order_is_lost(world, OrderService), schedules=20, **ARGUMENTS)  # type: ignore[arg-type]
