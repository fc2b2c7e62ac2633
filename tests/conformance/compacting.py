"""Write batches as bytes, have a topic compacted, and read the batches that are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.log.batches import HEADER_BYTES, Batch
from groupstorm.broker.log.records import keyed_records, pack, unpack
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.frames.requests import checked
from tests.broker.wire import RawClient, milliseconds, structure

DEADLINE_S = 30.0
_TRANSACTIONAL = 0x10


class Left(NamedTuple):
    """One batch of a log."""

    base_offset: int
    last_offset: int
    records: tuple[tuple[int, bytes | None, bytes | None, int], ...]
    """Offset, key, value and timestamp."""
    marker: str
    compression: int
    sequence: int
    has_delete_horizon: bool


def compressed(data: bytes, compression: int) -> bytes:
    """The batch of `wire.batch` with this compression."""
    records = pack(data[HEADER_BYTES:], compression)
    header = data[:8] + (HEADER_BYTES - 12 + len(records)).to_bytes(4, "big") + data[12:HEADER_BYTES]
    return checked(header[:22] + bytes((header[22] | compression,)) + header[23:] + records)


class Partition:
    """Partition 0 of a topic, over one connection."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self.client = client
        self.topic = topic

    def configure(self, **configs: str) -> None:
        changes = tuple(
            structure(44, 1, "AlterableConfig", name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in configs.items()
        )
        resource = structure(
            44, 1, "AlterConfigsResource", resource_type=2, resource_name=self.topic, configs=changes
        )
        answer = self.client.ask(44, 1, resources=(resource,), validate_only=False)
        assert answer.responses[0].error_code == Error.NONE, answer
        wanted = {name.replace("_", "."): value for name, value in configs.items()}
        _until(self._configs, lambda found: wanted.items() <= found.items())

    def _configs(self) -> dict[str, str]:
        resource = structure(
            32,
            4,
            "DescribeConfigsResource",
            resource_type=2,
            resource_name=self.topic,
            configuration_keys=None,
        )
        answer = self.client.ask(32, 4, resources=(resource,), include_synonyms=False)
        return {one.name: one.value for one in answer.results[0].configs}

    def try_to_write(self, data: bytes, transactional_id: str | None = None) -> Any:
        partition = structure(wire.PRODUCE, 9, "PartitionProduceData", index=0, records=data)
        topic = structure(wire.PRODUCE, 9, "TopicProduceData", name=self.topic, partition_data=(partition,))
        answer = self.client.ask(
            wire.PRODUCE,
            9,
            transactional_id=transactional_id,
            acks=-1,
            timeout=milliseconds(10_000),
            topic_data=(topic,),
        )
        return answer.responses[0].partition_responses[0]

    def write_until_refused(self, data: bytes) -> Any:
        """A real broker describes a new setting a moment before its log follows it."""
        return _until(lambda: self.try_to_write(data), lambda answer: answer.error_code != Error.NONE)

    def write(
        self,
        *records: tuple[bytes | None, bytes | None],
        at_ms: int,
        compression: int = 0,
        transactional_id: str | None = None,
        **fields: Any,
    ) -> int:
        """One batch; its offset."""
        keys, values = [key for key, _ in records], [value for _, value in records]
        data = wire.batch(values, keys=keys, timestamp_ms=at_ms, **fields)
        answer = self.try_to_write(compressed(data, compression), transactional_id)
        assert answer.error_code == Error.NONE, answer
        return int(answer.base_offset)

    def producer(self, transactional_id: str | None = None) -> tuple[int, int]:
        """A new producer id and epoch."""
        if transactional_id is not None:
            self._find_coordinator(transactional_id)

        def init() -> Any:
            return self.client.ask(
                wire.INIT_PRODUCER_ID,
                4,
                transactional_id=transactional_id,
                transaction_timeout=milliseconds(60_000),
                producer_id=-1,
                producer_epoch=-1,
            )

        answer = _until(init, lambda one: one.error_code == Error.NONE)
        return answer.producer_id, answer.producer_epoch

    def _find_coordinator(self, transactional_id: str) -> None:
        """Kafka makes its topic of transactions when it is first asked."""

        def find() -> Any:
            return self.client.ask(wire.FIND_COORDINATOR, 3, key=transactional_id, key_type=1)

        _until(find, lambda one: one.error_code == Error.NONE)

    def transact(
        self, transactional_id: str, *records: tuple[bytes, bytes], at_ms: int, commits: bool
    ) -> None:
        """One batch in a transaction of its own."""
        producer_id, epoch = self.producer(transactional_id)
        own: dict[str, Any] = {
            "transactional_id": transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        topic = structure(
            wire.ADD_PARTITIONS_TO_TXN, 3, "AddPartitionsToTxnTopic", name=self.topic, partitions=(0,)
        )

        def add() -> Any:
            added = self.client.ask(
                wire.ADD_PARTITIONS_TO_TXN,
                3,
                v3_and_below_topics=(topic,),
                **{f"v3_and_below_{name}": one for name, one in own.items()},
            )
            return added.results_by_topic_v3_and_below[0].results_by_partition[0]

        _until(add, lambda one: one.partition_error_code == Error.NONE)
        identity = {"producer_id": producer_id, "epoch": epoch, "sequence": 0, "attributes": _TRANSACTIONAL}
        offset = self.write(*records, at_ms=at_ms, transactional_id=transactional_id, **identity)
        assert self.client.ask(wire.END_TXN, 3, committed=commits, **own).error_code == Error.NONE
        _until(lambda: self.fetch(0), lambda one: one.high_watermark == offset + len(records) + 1)

    def fetch(self, offset: int) -> Any:
        asked = structure(
            wire.FETCH,
            11,
            "FetchPartition",
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=10_000_000,
            current_leader_epoch=-1,
        )
        topic = structure(wire.FETCH, 11, "FetchTopic", topic=self.topic, partitions=(asked,))
        answer = self.client.ask(
            wire.FETCH,
            11,
            replica_id=-1,
            max_wait=milliseconds(0),
            min_bytes=1,
            max_bytes=10_000_000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=(topic,),
            rack_id="",
        )
        return answer.responses[0].partitions[0]

    def left(self) -> list[Left]:
        """All batches."""
        found: list[Left] = []
        while True:
            data = self.fetch(found[-1].last_offset + 1 if found else 0).records
            if not data:
                return found
            while data:
                size = 12 + int.from_bytes(data[8:12], "big")
                found.append(_left(data[:size]))
                data = data[size:]

    def list_offset(self, timestamp_ms: int) -> tuple[int, int]:
        """Timestamp and offset of the first record of that time or later; -3: of the newest."""
        asked = structure(
            wire.LIST_OFFSETS,
            7,
            "ListOffsetsPartition",
            partition_index=0,
            timestamp=timestamp_ms,
            current_leader_epoch=-1,
        )
        topic = structure(wire.LIST_OFFSETS, 7, "ListOffsetsTopic", name=self.topic, partitions=(asked,))
        answer = self.client.ask(wire.LIST_OFFSETS, 7, replica_id=-1, topics=(topic,), isolation_level=0)
        found = answer.topics[0].partitions[0]
        return found.timestamp, found.offset

    def wait_for(self, offsets: Sequence[int]) -> list[Left]:
        """The batches, as soon as their records have these offsets."""
        return _until(self.left, lambda found: [row[0] for one in found for row in one.records] == offsets)

    def wait_for_batches(self, base_offsets: Sequence[int]) -> list[Left]:
        """The batches, as soon as they begin at these offsets."""
        return _until(self.left, lambda found: [one.base_offset for one in found] == base_offsets)


def _left(data: bytes) -> Left:
    header = Batch.read(data)
    marker = ""
    records: tuple[tuple[int, bytes | None, bytes | None, int], ...] = ()
    if header.count_of_records and header.is_control:
        marker = "commit" if header.is_commit_marker else "abort"
    elif header.count_of_records:
        unpacked = unpack(data[HEADER_BYTES:], header.compression)
        records = tuple(
            (header.base_offset + one.offset_delta, one.key, one.value, one.timestamp_ms)
            for one in keyed_records(data, unpacked)
        )
    return Left(
        header.base_offset,
        header.last_offset,
        records,
        marker,
        header.compression,
        header.base_sequence,
        header.delete_horizon_ms is not None,
    )


def _until(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    deadline_s = time.monotonic() + DEADLINE_S
    while not is_right(answer := ask()):
        assert time.monotonic() < deadline_s, answer
        time.sleep(0.02)
    return answer
