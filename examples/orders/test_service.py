"""What the service has to keep, on a broker of each test's own: `pytest examples/orders`.

With `--kafka jvm` the same tests run on Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from examples.orders.service import FirstOrderService, OrderService
from groupstorm.testing import Broker, Group

PARTITIONS = 4
ORDERS = [f"order-{number}" for number in range(8)]
PATIENCE_S = 60.0

pytestmark = pytest.mark.groupstorm(
    topics={"orders": PARTITIONS}, settings={"group.initial.rebalance.delay.ms": 0}
)

Service = Callable[..., FirstOrderService]


class Ledger:
    """Where orders are booked. While it is closed bookings wait."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.waiting: set[str] = set()
        self._open = asyncio.Event()
        self._changed = asyncio.Condition()

    async def book(self, order: str) -> None:
        async with self._changed:
            self.waiting.add(order)
            self._changed.notify_all()
        await self._open.wait()
        async with self._changed:
            self.booked.append(order)
            self._changed.notify_all()

    def open(self) -> None:
        self._open.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what more bookings bring about."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(is_so)

    async def until_booked(self, orders: Iterable[str], times: int = 1) -> None:
        """Wait until each of these orders is booked so often."""
        await self.until(lambda: all(self.booked.count(order) >= times for order in orders))


@asynccontextmanager
async def running(
    service: Service, broker: Broker, group: Group, ledger: Ledger, name: str = "booking"
) -> AsyncIterator[None]:
    """An instance of the service, stopped in the end. It starts meanwhile: joining a group takes as long as
    the others take to give up their partitions."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group.id,
        client_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        session_timeout_ms=round(PATIENCE_S * 1000),  # not the time that a busy machine may stand still
    )
    instance = service(consumer, broker.topic("orders"), ledger.book)
    starting = asyncio.create_task(instance.start())
    try:
        yield
        await starting
    finally:
        ledger.open()  # stopping waits for bookings in flight, in a test that has failed as well
        starting.cancel()
        await instance.stop()


async def produce(broker: Broker, orders: Iterable[str]) -> None:
    """The orders, spread over the partitions in turn."""
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    await producer.start()
    try:
        for number, order in enumerate(orders):
            topic = broker.topic("orders")
            await producer.send_and_wait(topic, order.encode(), partition=number % PARTITIONS)
    finally:
        await producer.stop()


async def lost_orders(
    service: Service, broker: Broker, revoked: Callable[[Group], Awaitable[None]]
) -> set[str]:
    """A second instance joins while the first one has orders in flight: which of them are never booked?

    Bookings go on when ``revoked`` has come about. In the end one more order goes to each partition: when
    these are booked, nothing that comes before them will be booked any more.
    """
    ledger, group = Ledger(), broker.group("booking")
    last = [f"last-{number}" for number in range(PARTITIONS)]
    await produce(broker, ORDERS)
    async with running(service, broker, group, ledger):
        await ledger.until(lambda: ledger.waiting == set(ORDERS))
        async with running(service, broker, group, ledger):
            await revoked(group)
            ledger.open()
            await group.stable(members=2, partitions=PARTITIONS, timeout_s=PATIENCE_S)
            await produce(broker, last)
            await ledger.until_booked(last)
    return set(ORDERS) - set(ledger.booked)


async def test_the_first_version_loses_what_is_in_flight(kafka_broker: Broker) -> None:
    """This is the defect: the second instance begins behind orders that nobody has booked."""
    lost = await lost_orders(FirstOrderService, kafka_broker, lambda group: group.stable(members=2))
    assert lost == set(ORDERS)


async def test_no_order_is_lost_when_an_instance_joins(kafka_broker: Broker) -> None:
    """The rebalance waits for the bookings: the group prepares it until the ledger opens."""
    lost = await lost_orders(OrderService, kafka_broker, lambda group: group.reaches("PreparingRebalance"))
    assert lost == set()


async def test_what_is_booked_is_committed_at_the_end(kafka_broker: Broker) -> None:
    ledger, group = Ledger(), kafka_broker.group("booking")
    ledger.open()
    await produce(kafka_broker, ORDERS)
    async with running(OrderService, kafka_broker, group, ledger):
        await ledger.until_booked(ORDERS)
    each = len(ORDERS) // PARTITIONS
    assert [group.committed("orders", number) for number in range(PARTITIONS)] == [each] * PARTITIONS


@pytest.mark.groupstorm(faults=True)
async def test_a_coordinator_that_is_away_for_a_moment_costs_nothing(kafka_broker: Broker) -> None:
    ledger, group = Ledger(), kafka_broker.group("booking")
    ledger.open()
    await produce(kafka_broker, ORDERS)
    refusals = kafka_broker.fail("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", count=2, group=group.id)
    async with running(OrderService, kafka_broker, group, ledger):
        await ledger.until_booked(ORDERS)
    assert refusals.hits == 2
    assert sum(group.committed("orders", number) or 0 for number in range(PARTITIONS)) == len(ORDERS)


@pytest.mark.groupstorm(emulated=True)
async def test_a_session_that_ends_books_orders_twice_but_loses_none(kafka_broker: Broker) -> None:
    """Who was expelled cannot commit what it books meanwhile: the others book it again."""
    ledger, group = Ledger(), kafka_broker.group("booking")
    async with (
        running(OrderService, kafka_broker, group, ledger, "first"),
        running(OrderService, kafka_broker, group, ledger, "second"),
    ):
        await group.stable(members=2, partitions=PARTITIONS)
        await produce(kafka_broker, ORDERS)
        await ledger.until(lambda: ledger.waiting == set(ORDERS))
        (first,) = [member for member in group.members if member.client_id == "first"]
        kafka_broker.expire_member(group.id, "first")
        ledger.open()
        of_first = [
            order
            for number, order in enumerate(ORDERS)
            if f"{kafka_broker.topic('orders')}-{number % PARTITIONS}" in first.partitions
        ]
        await ledger.until_booked(of_first, times=2)
    assert set(ledger.booked) == set(ORDERS)
