"""aiokafka: its consumer lives on an event loop of its own; the application works in another thread, so that
heartbeats go on meanwhile, as with an application that awaits its work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from groupstorm.storms.live.real_clients.workers.application import (
    Application,
    Fatal,
    Order,
    Record,
    names_of,
    records_of,
)

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

#: From so many records on: all that were fetched.
_ALL = 2**31 - 1


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka counts as untyped
    def __init__(self, application: Application) -> None:
        self._application = application

    async def on_partitions_assigned(self, assigned: Any) -> None:
        names = names_of(assigned)
        seconds = self._application.assigned(names)
        await asyncio.sleep(seconds)
        self._application.assigned_done(names, seconds)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await asyncio.sleep(self._application.revoked(names_of(revoked)))


class AiokafkaClient:
    rebalances_in_background = True

    def __init__(self, order: Order, application: Application) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._consumer = self._call(self._start(order, application))

    def poll(self, timeout_s: float, most: int) -> Sequence[Record]:
        try:
            records = most if most < _ALL else None
            batches = self._call(
                self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=records)
            )
        except KafkaError as problem:
            raise Fatal(getattr(problem, "message", type(problem).__name__)) from problem
        return records_of(batches)

    def close(self) -> None:
        self._call(self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _start(self, order: Order, application: Application) -> Any:
        own = dict(order.config)
        own["partition_assignment_strategy"] = [
            _ASSIGNORS[name] for name in own["partition_assignment_strategy"]
        ]
        consumer = AIOKafkaConsumer(**own)
        consumer.subscribe(list(order.topics), listener=_Listener(application))
        await consumer.start()
        return consumer

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


connect = AiokafkaClient
