"""The dead letter queues of share groups (Kafka: ShareGroupDLQStateManager).

A group's queue is a topic that has to exist, to allow it, and to have the prefix of such names. Otherwise
nothing is written, and the group is done with the record all the same. The records have headers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from groupstorm.broker.apis.api import BrokerState
from groupstorm.broker.log.batches import HEADER_BYTES, NO_PRODUCER_ID, RawHeader, parse_stored
from groupstorm.broker.log.cleaning import varint, with_records
from groupstorm.broker.log.records import KeyedRecord
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.share.logs import topic_of
from groupstorm.share_records.ports import CLIENT_REJECT, DeadLetter

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


class DeadLetters:
    """Appends to the queues at once."""

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
        header = RawHeader(0, 0, 0, _MAGIC, 0, 0, last, now_ms, now_ms, nobody, -1, -1, len(records))
        stored = parse_stored(with_records(header, records, None))
        assert stored is not None, "a batch that was just made is whole"
        appended = queue.partitions[partition].append(stored[0])
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
