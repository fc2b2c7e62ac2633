"""One group member per client library, unmodified, each on a thread of its own.

They behave alike, so that one test serves all: poll, note what came and what the callbacks said,
commit after every poll, leave when told to stop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

GROUP = "readers"
TOPIC = "orders"
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 100
DEADLINE_S = 60.0
#: The values of group.protocol; the newer one is KIP-848's.
CLASSIC, CONSUMER = "classic", "consumer"

Callback = tuple[Literal["assigned", "revoked"], frozenset[int]]


@dataclass
class Notes:
    """The observations of a member. Only its thread writes them, the test reads them."""

    partitions: frozenset[tuple[str, int]] = frozenset()
    records: list[tuple[int, int, str]] = field(default_factory=list)
    callbacks: list[Callback] = field(default_factory=list)

    def read(self, partition: int, records: Iterable[tuple[int, str]]) -> None:
        self.records.extend((partition, offset, value) for offset, value in records if value != WAKE_UP)

    def assigned(self, partitions: Iterable[Any], cooperative: bool) -> None:
        added = frozenset((one.topic, one.partition) for one in partitions)
        self.callbacks.append(("assigned", _numbers(added)))
        self.partitions = self.partitions | added if cooperative else added

    def revoked(self, partitions: Iterable[Any]) -> None:
        gone = frozenset((one.topic, one.partition) for one in partitions)
        self.callbacks.append(("revoked", _numbers(gone)))
        self.partitions -= gone


def _numbers(partitions: frozenset[tuple[str, int]]) -> frozenset[int]:
    return frozenset(number for _, number in partitions)


class Threaded:
    """Work on a thread of its own, from `_start` until `stop`, which raises what has ended it before."""

    failure: BaseException | None = None

    def _start(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        deadline_s = time.monotonic() + DEADLINE_S
        while self._thread.is_alive() and time.monotonic() < deadline_s:
            self._wake()  # again and again: in a rebalance it may own nothing by which it could be woken
            self._thread.join(0.2)
        assert not self._thread.is_alive(), f"it has not ended within {DEADLINE_S:g} s"
        if self.failure is not None:
            raise self.failure

    def _wake(self) -> None:
        """Make a waiting poll return now."""

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:
            self.failure = failure
            raise

    def _run(self) -> None:
        raise AssertionError("each library runs in its own way")


class Member(Threaded):
    """A running consumer; `stop` makes it leave its group, unless it is a static member.

    ``strategy``: a class for the library's ``partition_assignment_strategy``, instead of its own assignors.
    ``instance``: its group.instance.id. ``protocol``: its group.protocol; with `consumer` the broker assigns.
    """

    def __init__(
        self,
        address: str,
        assignor: str = "range",
        strategy: type | None = None,
        topics: Sequence[str] = (TOPIC,),
        group: str = GROUP,
        instance: str | None = None,
        protocol: str = CLASSIC,
    ) -> None:
        self.notes = Notes()
        self._address = address
        self._assignor = assignor
        self._strategy = strategy
        self._topics = topics
        self._group = group
        self._instance = instance
        self._protocol = protocol
        self._start()

    @property
    def cooperative(self) -> bool:
        return "cooperative" in self._assignor or self._protocol == CONSUMER

    @property
    def owned(self) -> frozenset[int]:
        return _numbers(self.notes.partitions)

    @property
    def values(self) -> list[str]:
        return [value for _, _, value in self.notes.records]


#: A record that is no record of a test's.
WAKE_UP = "wake up"


class KafkaPythonMember(Member):
    """Polls without end: in kafka-python 3.0.12 a poll that times out during a rebalance may lose it.

    If JoinGroup and SyncGroup are answered between two polls, `need_rejoin()` is already false in
    the second one, and the assignment is never taken up (ConsumerCoordinator.join_group_async).

    A poll raises a retriable error if the broker's port is closed just as the coordinator is looked
    up (ensure_coordinator_ready_async awaits the refresh of the metadata). An application polls again.
    """

    def _wake(self) -> None:
        from kafka import KafkaProducer

        for topic, partition in sorted(self.notes.partitions)[:1]:
            producer = KafkaProducer(bootstrap_servers=self._address)
            producer.send(topic, WAKE_UP.encode(), partition=partition)
            producer.close()

    def _run(self) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer, errors
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        notes, cooperative = self.notes, self.cooperative

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
            def on_partitions_assigned(self, assigned: Any) -> None:
                notes.assigned(assigned, cooperative)

            def on_partitions_revoked(self, revoked: Any) -> None:
                notes.revoked(revoked)

        consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self._group,
            group_instance_id=self._instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            partition_assignment_strategy=[
                self._strategy or (CooperativeStickyAssignor if cooperative else RangePartitionAssignor)
            ],
        )
        consumer.subscribe(self._topics, listener=Listener())
        try:
            while not self._stopping.is_set():
                try:
                    polled = consumer.poll(timeout_ms=DEADLINE_S * 1000)
                except errors.RetriableError:
                    continue
                for partition, records in polled.items():
                    notes.read(partition.partition, ((one.offset, one.value.decode()) for one in records))
                if polled:
                    _commit_unless_rebalancing(consumer.commit)
        finally:
            consumer.close(autocommit=False)


def _commit_unless_rebalancing(commit: Callable[[], object]) -> None:
    from kafka import errors

    try:
        commit()
    except (errors.CommitFailedError, errors.RebalanceInProgressError, errors.IllegalGenerationError):
        return  # the partition's next owner reads these records again


#: The errors of a commit after which the partition's next owner reads the records again.
_TOO_LATE = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")


class ConfluentMember(Member):
    def _run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        notes, cooperative = self.notes, self.cooperative
        static = {} if self._instance is None else {"group.instance.id": self._instance}
        classic = {
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
            "partition.assignment.strategy": self._assignor,
        }
        consumer = Consumer(
            {
                **static,
                **(classic if self._protocol == CLASSIC else {"group.protocol": CONSUMER}),
                "bootstrap.servers": self._address,
                "group.id": self._group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )

        def on_assign(_consumer: Any, partitions: Any) -> None:
            notes.assigned(partitions, cooperative)

        def on_revoke(_consumer: Any, partitions: Any) -> None:
            notes.revoked(partitions)

        consumer.subscribe(list(self._topics), on_assign=on_assign, on_revoke=on_revoke)
        try:
            while not self._stopping.is_set():
                record = consumer.poll(0.05)
                if record is None:
                    continue
                if record.error():
                    raise KafkaException(record.error())
                notes.read(record.partition(), [(record.offset(), record.value().decode())])
                try:
                    consumer.commit(message=record, asynchronous=False)
                except KafkaException as problem:
                    if problem.args[0].name() not in _TOO_LATE:
                        raise
        finally:
            consumer.close()


class AiokafkaMember(Member):
    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.errors import CommitFailedError, IllegalStateError

        notes = self.notes

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
            def on_partitions_assigned(self, assigned: Any) -> None:
                notes.assigned(assigned, cooperative=False)

            def on_partitions_revoked(self, revoked: Any) -> None:
                notes.revoked(revoked)

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self._group,
            group_instance_id=self._instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            partition_assignment_strategy=[self._strategy or RoundRobinPartitionAssignor],
        )
        consumer.subscribe(self._topics, listener=Listener())
        await consumer.start()
        try:
            while not self._stopping.is_set():
                polled = await consumer.getmany(timeout_ms=50)
                for partition, records in polled.items():
                    notes.read(partition.partition, ((one.offset, one.value.decode()) for one in records))
                if polled:
                    try:
                        await consumer.commit()
                    except (CommitFailedError, IllegalStateError):
                        continue  # the partition's next owner reads these records again
        finally:
            await consumer.stop()


MEMBERS: dict[str, type[Member]] = {
    "aiokafka": AiokafkaMember,
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
}
