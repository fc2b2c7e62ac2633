"""Requests that the load sends, and how the records of a partition are read back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.log.batches import HEADER_BYTES, LENGTH_END, Batch
from groupstorm.broker.log.records import keyed_records
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
        timeout=milliseconds(1000),
        topic_data=({"name": topic, "partition_data": (data,)},),
    )
    return answer.responses[0].partition_responses[0]


def begin_transaction(
    client: RawClient, name: str, topic: str, partitions: Sequence[int]
) -> tuple[int, int] | None:
    """Producer id and epoch; None if the transaction before has not ended yet."""
    producer = client.ask(
        wire.INIT_PRODUCER_ID,
        4,
        transactional_id=name,
        transaction_timeout=milliseconds(60_000),
        producer_id=-1,
        producer_epoch=-1,
    )
    if producer.error_code == Error.CONCURRENT_TRANSACTIONS:
        return None
    assert producer.error_code == Error.NONE
    asked = {"name": topic, "partitions": tuple(partitions)}
    added = client.ask(
        wire.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=(asked,),
    )
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == Error.NONE
    return producer.producer_id, producer.producer_epoch


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
        answer = _fetch(client, topic, partition, offset)
        assert answer.error_code == Error.NONE
        if not answer.records:
            return
        aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ())
        dropped: set[int] = set()
        for batch in _batches(answer.records):
            header = Batch.read(batch)
            offset = header.last_offset + 1
            while aborted and aborted[0][0] <= header.last_offset:
                dropped.add(aborted.pop(0)[1])
            if header.is_control:
                if header.count_of_records and not header.is_commit_marker:
                    dropped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in dropped):
                for one in keyed_records(batch, batch[HEADER_BYTES:]):
                    yield Record(header.base_offset + one.offset_delta, one.key, one.value)


def _batches(records: bytes) -> Iterator[bytes]:
    """The batches of an answer, which gives whole ones only."""
    at = 0
    while at < len(records):
        end = at + LENGTH_END + int.from_bytes(records[at + 8 : at + LENGTH_END], "big")
        yield records[at:end]
        at = end


def _fetch(client: RawClient, topic: str, partition: int, offset: int) -> Any:
    asked = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": 1_000_000,
        "current_leader_epoch": -1,
    }
    answer = client.ask(
        wire.FETCH,
        11,
        replica_id=-1,
        max_wait=milliseconds(0),
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=({"topic": topic, "partitions": (asked,)},),
        rack_id="",
    )
    return answer.responses[0].partitions[0]
