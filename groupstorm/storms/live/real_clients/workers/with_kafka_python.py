"""kafka-python: the pure Python consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import FencedInstanceIdError, GroupMaxSizeReachedError

from groupstorm.storms.live.real_clients.workers.application import (
    Application,
    Fatal,
    Order,
    Record,
    names_of,
    on_assigned,
    on_revoked,
    records_of,
)

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python counts as untyped
    def __init__(self, application: Application) -> None:
        self._application = application

    def on_partitions_assigned(self, assigned: Any) -> None:
        on_assigned(self._application, names_of(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        on_revoked(self._application, names_of(revoked))

    def on_partitions_lost(self, lost: Any) -> None:
        on_revoked(self._application, names_of(lost), lost=True)


class KafkaPythonClient:
    rebalances_in_background = False

    def __init__(self, order: Order, application: Application) -> None:
        own = dict(order.config)
        own["partition_assignment_strategy"] = [
            _ASSIGNORS[name] for name in own["partition_assignment_strategy"]
        ]
        self._consumer = KafkaConsumer(**own)
        self._consumer.subscribe(list(order.topics), listener=_Listener(application))

    def poll(self, timeout_s: float, most: int) -> Sequence[Record]:
        try:
            batches = self._consumer.poll(timeout_ms=timeout_s * 1000, max_records=most)
        except (FencedInstanceIdError, GroupMaxSizeReachedError) as problem:
            raise Fatal(problem.message) from problem
        return records_of(batches)

    def close(self) -> None:
        self._consumer.close()


connect = KafkaPythonClient
