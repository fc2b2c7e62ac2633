"""Are the totals right, whatever happens? Under schedules in virtual time: `pytest examples/orders`.

With `--schedules 1000` under so many.
"""

from __future__ import annotations

from collections import Counter

import pytest
from aiokafka import AIOKafkaConsumer

from examples.orders.totals import FirstTotalsService, Store, TotalsService
from groupstorm.simulation import ScheduleFailed, World, simulate

ORDERS = [("ada", 5), ("bob", 7), ("eve", 11)] * 20


async def instance(kind: type[FirstTotalsService], servers: str, name: str, store: Store) -> None:
    options = {"bootstrap_servers": servers, "group_id": "totals", "client_id": name}
    await kind(AIOKafkaConsumer(**options, enable_auto_commit=False), "orders", store).run()


async def check_totals(world: World, kind: type[FirstTotalsService]) -> None:
    store, expected = Store(), Counter[str]()
    for name in ("one", "two"):
        await world.start(instance, kind, world.bootstrap_servers, name, store, name=name, restarts=True)
    for customer, amount in ORDERS:
        world.broker.produce("orders", f"{customer} {amount}")
        expected[customer] += amount
        await world.run_for(2)
    await world.run_for(180)
    assert store.totals() == expected, "the totals are wrong"


@pytest.mark.groupstorm(time="virtual", schedules=10, topics={"orders": 3})
async def test_totals_are_right_under_every_schedule(world: World) -> None:
    await check_totals(world, TotalsService)


def test_a_schedule_finds_the_stale_totals_of_the_first_version() -> None:
    """This is the defect: partitions come back, and are counted on from totals of before."""
    with pytest.raises(ScheduleFailed, match="the totals are wrong") as failed:
        simulate(lambda world: check_totals(world, FirstTotalsService), schedules=50, topics={"orders": 3})
    assert len(failed.value.schedule.happenings) <= 1
