"""Requests of a producer over TCP, and how the records of a partition are read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.log.batches import HEADER_BYTES, LENGTH_END, Batch
from groupstorm.broker.log.records import KeyedRecord, keyed_records, unpack
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.wire import RawClient, milliseconds


class Record(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


def send(
    client: RawClient, topic: str, partition: int, records: bytes, transactional_id: str | None = None
) -> Any:
    """Produce with acks=all; the answer for the partition."""
    data = {"index": partition, "records": records}
    answer = client.ask(
        wire.PRODUCE,
        9,
        transactional_id=transactional_id,
        acks=-1,
        timeout=milliseconds(10_000),
        topic_data=({"name": topic, "partition_data": (data,)},),
    )
    return answer.responses[0].partition_responses[0]


def init_producer(client: RawClient, name: str | None) -> Any:
    """``name``: the transactional id, if the producer has one."""
    return client.ask(
        wire.INIT_PRODUCER_ID, 4, transactional_id=name, transaction_timeout=milliseconds(60_000)
    )


def add_partitions(
    client: RawClient, name: str, producer: tuple[int, int], topic: str, partitions: Sequence[int]
) -> int:
    """The error of the first partition."""
    added = client.ask(
        wire.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=({"name": topic, "partitions": tuple(partitions)},),
    )
    return int(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


def end_transaction(client: RawClient, name: str, producer: tuple[int, int], commits: bool) -> None:
    own: dict[str, Any] = {
        "transactional_id": name,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
    }
    assert client.ask(wire.END_TXN, 3, committed=commits, **own).error_code == Error.NONE


def read(client: RawClient, topic: str, partition: int) -> Iterator[Record]:
    """The committed records, as a consumer with `read_committed` sees them."""
    offset = 0
    while True:
        answer = fetch(client, topic, partition, offset)
        assert answer.error_code == Error.NONE
        if not answer.records:
            return
        fetched = [*batches(answer.records)]
        for at, one in records_of(fetched, answer.aborted_transactions or ()):
            yield Record(at, one.key, one.value)
        offset = Batch.read(fetched[-1]).last_offset + 1


def records_of(fetched: Iterable[bytes], aborted: Iterable[Any]) -> Iterator[tuple[int, KeyedRecord]]:
    """The records of batches with their offsets, without those of aborted transactions."""
    waiting = sorted((one.first_offset, one.producer_id) for one in aborted)
    dropped: set[int] = set()
    for data in fetched:
        header = Batch.read(data)
        while waiting and waiting[0][0] <= header.last_offset:
            dropped.add(waiting.pop(0)[1])
        if header.is_control:
            if header.count_of_records and not header.is_commit_marker:
                dropped.discard(header.producer_id)
        elif header.count_of_records and not (header.is_transactional and header.producer_id in dropped):
            for one in keyed_records(data, unpack(data[HEADER_BYTES:], header.compression)):
                yield header.base_offset + one.offset_delta, one


def batches(records: bytes) -> Iterator[bytes]:
    """The batches of an answer, which gives whole ones only."""
    at = 0
    while at < len(records):
        end = at + LENGTH_END + int.from_bytes(records[at + 8 : at + LENGTH_END], "big")
        yield records[at:end]
        at = end


def fetch(client: RawClient, topic: str, partition: int, offset: int, isolation_level: int = 1) -> Any:
    """The answer for the partition; ``isolation_level``: 1: of committed reads."""
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 10_000_000}
    answer = client.ask(
        wire.FETCH,
        11,
        max_wait=milliseconds(0),
        min_bytes=1,
        max_bytes=10_000_000,
        isolation_level=isolation_level,
        topics=({"topic": topic, "partitions": (asked,)},),
    )
    return answer.responses[0].partitions[0]
