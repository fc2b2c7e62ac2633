"""Write batches as bytes, have a topic compacted, and read the batches that are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.log.batches import HEADER_BYTES, Batch
from groupstorm.broker.log.records import keyed_records, unpack
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.frames.requests import compressed
from tests.broker.kills import requests
from tests.broker.wire import RawClient

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


class Partition:
    """Partition 0 of a topic, over one connection."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self.client = client
        self.topic = topic

    def configure(self, **configs: str) -> None:
        wanted = {name.replace("_", "."): value for name, value in configs.items()}
        changes = [{"name": name, "config_operation": 0, "value": value} for name, value in wanted.items()]
        resource = {"resource_type": 2, "resource_name": self.topic, "configs": changes}
        answer = self.client.ask(44, 1, resources=(resource,), validate_only=False)
        assert answer.responses[0].error_code == Error.NONE, answer
        _until(self._configs, lambda found: wanted.items() <= found.items())

    def _configs(self) -> dict[str, str]:
        resource = {"resource_type": 2, "resource_name": self.topic, "configuration_keys": None}
        answer = self.client.ask(32, 4, resources=(resource,), include_synonyms=False)
        return {one.name: one.value for one in answer.results[0].configs}

    def try_to_write(self, data: bytes, transactional_id: str | None = None) -> Any:
        return requests.send(self.client, self.topic, 0, data, transactional_id)

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

        answer = _until(
            lambda: requests.init_producer(self.client, transactional_id),
            lambda one: one.error_code == Error.NONE,
        )
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
        name, producer = transactional_id, self.producer(transactional_id)
        _until(
            lambda: requests.add_partitions(self.client, name, producer, self.topic, (0,)),
            lambda error: error == Error.NONE,
        )
        own = {"producer_id": producer[0], "epoch": producer[1], "sequence": 0, "attributes": _TRANSACTIONAL}
        offset = self.write(*records, at_ms=at_ms, transactional_id=name, **own)
        requests.end_transaction(self.client, name, producer, commits)
        _until(lambda: self.fetch(0), lambda one: one.high_watermark == offset + len(records) + 1)

    def fetch(self, offset: int) -> Any:
        return requests.fetch(self.client, self.topic, 0, offset, isolation_level=0)

    def left(self) -> list[Left]:
        """All batches."""
        found: list[Left] = []
        while True:
            data = self.fetch(found[-1].last_offset + 1 if found else 0).records
            if not data:
                return found
            found += map(_left, requests.batches(data))

    def list_offset(self, timestamp_ms: int) -> tuple[int, int]:
        """Timestamp and offset of the first record of that time or later; -3: of the newest."""
        asked = {"partition_index": 0, "timestamp": timestamp_ms, "current_leader_epoch": -1}
        topic = {"name": self.topic, "partitions": (asked,)}
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
