"""Dear requests about records and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from benchmarks.dear_requests.frames import (
    ADD_PARTITIONS_TO_TXN,
    DELETE_RECORDS,
    END_TXN,
    EPOCH_END,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Client,
    case,
    frame,
    made,
    make_topics,
)
from benchmarks.dear_requests.groups import commit_frame


def _producer(client: Client) -> dict[str, Any]:
    timeout = {"transaction_timeout": timedelta(seconds=60)}
    own = client.ask(INIT_PRODUCER_ID, 2, transactional_id="t", **timeout)
    return {"transactional_id": "t", "producer_id": own.producer_id, "producer_epoch": own.producer_epoch}


def _add_to_txn(topics: Sequence[str], partitions: int, producer: dict[str, Any]) -> bytes:
    kind = "AddPartitionsToTxnTopic"
    named = tuple(
        made(ADD_PARTITIONS_TO_TXN, 3, kind, name=name, partitions=tuple(range(partitions)))
        for name in topics
    )
    own = {f"v3_and_below_{name}": value for name, value in {**producer, "topics": named}.items()}
    return frame(ADD_PARTITIONS_TO_TXN, 3, **own)


@case("AddPartitionsToTxn, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_add_to_txn(make_topics(client, 4, 5_000), 5_000, _producer(client))]


@case("AddPartitionsToTxn, 200,000 unknown partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_add_to_txn(["unknown"], 200_000, _producer(client))]


@case("EndTxn of 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    producer = _producer(client)
    for name in make_topics(client, 4, 5_000):
        client.send(_add_to_txn([name], 5_000, producer))
    return [frame(END_TXN, 2, committed=True, **producer)]


@case("TxnOffsetCommit, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [commit_frame(TXN_OFFSET_COMMIT, 2, make_topics(client, 4, 5_000), 5_000, **_producer(client))]


@case("ListOffsets, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(LIST_OFFSETS, 5, "ListOffsetsPartition", partition_index=index, timestamp=-1)
        for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(LIST_OFFSETS, 5, "ListOffsetsTopic", name=name, partitions=asked) for name in names)
    return [frame(LIST_OFFSETS, 5, replica_id=-1, topics=topics)]


@case("OffsetForLeaderEpoch, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(made(EPOCH_END, 3, "OffsetForLeaderPartition", partition=index) for index in range(5_000))
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(EPOCH_END, 3, "OffsetForLeaderTopic", topic=name, partitions=asked) for name in names)
    return [frame(EPOCH_END, 3, replica_id=-1, topics=topics)]


@case("DeleteRecords, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(DELETE_RECORDS, 1, "DeleteRecordsPartition", partition_index=index, offset=-1)
        for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(
        made(DELETE_RECORDS, 1, "DeleteRecordsTopic", name=name, partitions=asked) for name in names
    )
    return [frame(DELETE_RECORDS, 1, topics=topics)]


def _fetch(names: Sequence[str], partitions: int, **more: Any) -> bytes:
    asked = tuple(
        made(FETCH, 11, "FetchPartition", partition=index, partition_max_bytes=1000, current_leader_epoch=-1)
        for index in range(partitions)
    )
    topics = tuple(made(FETCH, 11, "FetchTopic", topic=name, partitions=asked) for name in names)
    fields = {"replica_id": -1, "max_wait": timedelta(0), "min_bytes": 1, "max_bytes": 1_000_000}
    return frame(FETCH, 11, topics=topics, **{**fields, "session_epoch": -1, **more})


@case("Fetch, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000)]


@case("Fetch, 20,000 partitions, new session")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000, session_epoch=0)]


@case("Fetch, 20,000 partitions, waits 100 ms")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000, max_wait=timedelta(milliseconds=100))]


@case("Produce, 20,000 partitions without records")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(PRODUCE, 7, "PartitionProduceData", index=index, records=None) for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(PRODUCE, 7, "TopicProduceData", name=name, partition_data=asked) for name in names)
    return [frame(PRODUCE, 7, transactional_id=None, acks=-1, topic_data=topics)]


@case("FindCoordinator, 200,000 keys")
def _(client: Client) -> Iterable[bytes]:
    return [
        frame(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=tuple(f"g{one}" for one in range(200_000)))
    ]
