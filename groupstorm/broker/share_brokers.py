"""The share brokers of this process (KIP-932): one for each broker, with one clock and one share coordinator.

They are the surroundings of `groupstorm.share_records`, which decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from uuid import UUID

from groupstorm.broker.apis.api import AskShareBroker
from groupstorm.broker.changes import ShareStateDeleted, ShareStateUpdated
from groupstorm.broker.group_coordination import Answered
from groupstorm.broker.log.batches import HEADER_BYTES, NO_PRODUCER_ID, Batch
from groupstorm.broker.log.cleaning import with_records
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.records import KeyedRecord, varint
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.requests import Unfinished
from groupstorm.broker.share_logs import BrokersCluster, id_of, kept, share_key, topic_of
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.share_records.broker import Ports, ShareBroker
from groupstorm.share_records.coordinator import StateRecord
from groupstorm.share_records.partition import SharePartition
from groupstorm.share_records.ports import (
    CLIENT_REJECT,
    DeadLetter,
    ReadAnswer,
    SharePartitionKey,
    WriteState,
)
from groupstorm.share_records.timers import Timers
from groupstorm.turns import Turns

#: So many timers are fired at once: a session may have thousands of locks, and others wait meanwhile.
_TIMERS_AT_ONCE = 300


class ShareBrokers:
    """Asks the share broker that a client has reached, and collects the answers."""

    def __init__(self, state: BrokerState, unfinished: Unfinished) -> None:
        #: The requests that have their answers, in this order.
        self.answered: deque[Answered] = deque()
        self._state = state
        self._unfinished = unfinished
        self._persister = SharePersister(state)
        self._timers = Timers()
        self._brokers: dict[int, tuple[ShareBroker, BrokersCluster]] = {}
        self._asked: dict[int, AskShareBroker] = {}

    def ask(self, connection: int, node: int, asked: AskShareBroker) -> None:
        """Ask for a connection. ``node``: the broker that it has asked."""
        self._timers.now_ms = self._state.now_ms
        self._asked[connection] = asked
        self._carry_out(node, self._broker(node).handle(asked.request, connection))

    def _carry_out(self, node: int, turns: Turns[None]) -> None:
        self._unfinished.begin(None, self._collected(node, turns))

    def _collected(self, node: int, turns: Turns[None]) -> Turns[None]:
        yield from turns
        self._collect(self._broker(node))

    def forget(self, connection: int) -> None:
        """A connection has closed: its session ends, and what its member holds is released."""
        self._timers.now_ms = self._state.now_ms
        self._asked.pop(connection, None)
        for broker, _ in self._brokers.values():
            broker.disconnect(str(connection))
            self._collect(broker)

    def appended(self, logs: Iterable[PartitionLog]) -> None:
        """Logs have grown, or their transactions have ended."""
        self._timers.now_ms = self._state.now_ms
        logs = tuple(logs)
        for broker, cluster in self._brokers.values():
            read = [partition for log in logs if (partition := cluster.read.get(log)) is not None]
            if read:
                broker.records_arrived(*read)
                self._collect(broker)

    def tell(self) -> None:
        """Follow the changes of topics and of configurations of groups."""
        state = self._state
        if state.deleted_topics:
            self._persister.forget_topics()
        for broker, cluster in self._brokers.values():
            if state.deleted_topics or state.changed_topics:
                known = {key.topic_partition for key in broker.share_partitions}
                for partition in known:
                    if not cluster.leads(partition):
                        broker.leave_partition(partition)
                cluster.forget_deleted()
            for group in state.changed_groups:
                broker.set_group_options(group, state.group_configs.get(group, {}))
            self._collect(broker)

    def of_group(self, group: str) -> Iterator[SharePartition]:
        for broker, _ in self._brokers.values():
            yield from (one for key, one in broker.share_partitions.items() if key.group == group)

    def next_deadline(self) -> int | None:
        return self._timers.next_deadline()

    def fire(self, now_ms: int) -> None:
        """Fire timers that are due, or the first of many."""
        self._timers.now_ms = now_ms
        for _ in range(_TIMERS_AT_ONCE):
            if not self._timers.fire_one():
                break
        for broker, _ in self._brokers.values():
            self._collect(broker)

    def stop(self) -> None:
        """Forget sessions and locks, as a broker that ends does: nothing is written any more."""
        self._brokers.clear()
        self._asked.clear()

    def _broker(self, node: int) -> ShareBroker:
        if node not in self._brokers:
            state = self._state
            cluster = BrokersCluster(state.topics, node)
            ports = Ports(cluster, self._persister, _DeadLetters(state))
            broker = ShareBroker(state.share_config, ports, self._timers, partial(self._carry_out, node))
            for group, own in state.group_configs.items():
                broker.set_group_options(group, own)
            self._brokers[node] = broker, cluster
        return self._brokers[node][0]

    def _collect(self, broker: ShareBroker) -> None:
        for token, response in broker.drain():
            connection = int(str(token))
            asked = self._asked.pop(connection, None)
            if asked is not None:  # else the client has closed its connection
                self.answered.append(Answered(connection, asked.finish(response)))


#: Kafka's default of errors.deadletterqueue.topic.name.prefix.
_PREFIX = "dlq."
_NAME = "errors.deadletterqueue.topic.name"
_ALLOWED = "errors.deadletterqueue.group.enable"
_REJECTED, _TOO_OFTEN = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
_MAGIC = 2
#: No key and no value.
_NOTHING = varint(-1) * 2
#: Length, attributes and the two deltas of a record take no more.
_RECORD_HEAD_BYTES = 20


class _DeadLetters:
    """Appends to the queues at once.

    A group's queue is a topic that has to exist, to allow it, and to have the prefix of such names. Otherwise
    nothing is written, and the group is done with the record all the same. The records have headers only.
    """

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def enqueue(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        queue = self._queue(letter.key.group)
        if queue is not None:
            self._append(queue, letter)
        done()

    def _queue(self, group: str) -> Topic | None:
        name = self._state.group_configs.get(group, {}).get(_NAME, "")
        topic = self._state.topics.get(name) if name.startswith(_PREFIX) else None
        is_allowed = topic is not None and topic.configs.get(_ALLOWED) == "true"
        return topic if is_allowed else None

    def _append(self, queue: Topic, letter: DeadLetter) -> None:
        """Append the records in batches that the queue takes."""
        partition = letter.key.topic_partition.partition % len(queue.partitions)
        log = queue.partitions[partition]
        pending: list[bytes] = []
        size = HEADER_BYTES
        for headers in self._headers(letter):
            more = len(headers) + _RECORD_HEAD_BYTES
            if pending and size + more > log.settings.max_message_bytes:
                self._append_batch(queue, partition, pending)
                pending, size = [], HEADER_BYTES
            pending.append(headers)
            size += more
        self._append_batch(queue, partition, pending)

    def _append_batch(self, queue: Topic, partition: int, headers: list[bytes]) -> None:
        now_ms = self._state.now_ms
        records = [
            KeyedRecord(now_ms, number, None, None, 0, _NOTHING + one) for number, one in enumerate(headers)
        ]
        last, nobody = len(records) - 1, NO_PRODUCER_ID
        batch = Batch(0, 0, 0, _MAGIC, 0, 0, last, now_ms, now_ms, nobody, -1, -1, len(records), b"")
        appended = queue.partitions[partition].append(Batch.read(with_records(batch, records, None)))
        self._state.note_append(queue, partition, appended)

    def _headers(self, letter: DeadLetter) -> Iterator[bytes]:
        """The headers of each record, as bytes."""
        (group, (topic_id, partition)), first, last, count, cause = letter
        topic = topic_of(self._state.topics, topic_id)
        name = topic_id if topic is None else topic.name
        why = _REJECTED if cause == CLIENT_REJECT else _TOO_OFTEN
        for offset in range(first, last + 1):
            headers = {
                "topic": name,
                "partition": partition,
                "offset": offset,
                "group": group,
                "delivery.count": count,
                "message": why,
            }
            texts = [(f"__dlq.errors.{key}", str(value)) for key, value in headers.items()]
            yield varint(len(texts)) + b"".join(_text(text) for pair in texts for text in pair)


def _text(text: str) -> bytes:
    data = text.encode()
    return varint(len(data)) + data


class SharePersister:
    """Answers inside each call. The records of the share coordinator are changes of the broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    # what leaders ask (`groupstorm.share_records.ports.Persister`)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: Callable[[ReadAnswer | None], None]
    ) -> None:
        answer, record = self._state.share_states.read(key, leader_epoch)
        self._note(key, record)
        done(answer)

    def write(self, request: WriteState, done: Callable[[Error | None], None]) -> None:
        error, record = self._state.share_states.write(request)
        self._note(request.key, record, request)
        done(error)

    # what the group coordinator asks (`groupstorm.coordinator.share.persister.Persister`)

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        first_error = NO_ERROR
        for topic_id, starts in asked.starts.items():
            for partition, start in starts.items():
                key = share_key(group, topic_id, partition)
                error, record = self._state.share_states.initialize(key, asked.epoch, start)
                self._note(key, record)
                first_error = error if first_error is NO_ERROR else first_error
                yield 1
        return first_error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        for topic_id, numbers in partitions.items():
            for partition in numbers:
                key = share_key(group, topic_id, partition)
                self._note(key, self._state.share_states.delete(key)[1])
                yield 1
        return NO_ERROR

    def forget_topics(self) -> None:
        """Topics are gone, and with them the states of their partitions."""
        for key in self._state.share_states.forget_unknown():
            self._note(key, StateRecord.TOMBSTONE)

    def _note(
        self, key: SharePartitionKey, record: StateRecord | None, request: WriteState | None = None
    ) -> None:
        group, (topic, partition) = key
        changes = self._state.changes
        if record is StateRecord.TOMBSTONE:
            changes.append(ShareStateDeleted(group, id_of(topic), partition))
        elif record is StateRecord.UPDATE and request is not None:
            _, state_epoch, leader_epoch, start, complete, batches = request
            where = group, id_of(topic), partition
            changes.append(
                ShareStateUpdated(*where, start, complete, leader_epoch, state_epoch, tuple(batches))
            )
        elif record is not None:
            changes.append(kept(key, self._state.share_states.summary(key)[1]))
