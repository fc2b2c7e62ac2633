"""Dear requests about records and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from kafka.record.default_records import DefaultRecordBatchBuilder

from benchmarks.dear_requests.frames import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
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
from groupstorm.protocol.codec import decoder, response_types


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


@case("AddPartitionsToTxn, 100,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_add_to_txn(make_topics(client, 20, 5_000), 5_000, _producer(client))]


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


@case("TxnOffsetCommit, 12,000 partitions, which fit into a batch")
def _(client: Client) -> Iterable[bytes]:
    names, producer = make_topics(client, 3, 4_000), _producer(client)
    client.ask(ADD_OFFSETS_TO_TXN, 2, group_id="g", **producer)
    return [commit_frame(TXN_OFFSET_COMMIT, 2, names, 4_000, **producer)]


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


def _fetch(names: Sequence[str], partitions: int, partition_max_bytes: int = 1_000, **more: Any) -> bytes:
    of_one = {"partition_max_bytes": partition_max_bytes, "current_leader_epoch": -1}
    asked = tuple(made(FETCH, 11, "FetchPartition", partition=index, **of_one) for index in range(partitions))
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


@case("EndTxn of 12,000 offsets")
def _(client: Client) -> Iterable[bytes]:
    names, producer = make_topics(client, 3, 4_000), _producer(client)
    client.ask(ADD_OFFSETS_TO_TXN, 2, group_id="g", **producer)
    client.send(commit_frame(TXN_OFFSET_COMMIT, 2, names, 4_000, **producer))
    return [frame(END_TXN, 2, committed=True, **producer)]


@case("DeleteTopics, 1,000 topics beside a transaction of 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 1_000, 5)
    producer = _producer(client)
    big = [f"big-{number}" for number in range(4)]
    for name in big:
        one = made(CREATE_TOPICS, 5, "CreatableTopic", name=name, num_partitions=5_000, replication_factor=1)
        client.ask(CREATE_TOPICS, 4, topics=(one,))
        client.send(_add_to_txn([name], 5_000, producer))
    return [frame(DELETE_TOPICS, 5, topic_names=tuple(names))]


@case("Fetch, 100,000 partitions, new session and its next request")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 20, 5_000)
    answer = decoder(response_types(FETCH, 11).root)(client.send(_fetch(names, 5_000, session_epoch=0)), 4)[0]
    session = {"session_id": answer.session_id, "session_epoch": 1}
    return [_fetch(names, 5_000, session_epoch=0), _fetch([], 0, **session), _fetch(names, 5_000, **session)]


@case("ListOffsets, 100,000 partitions by time")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(LIST_OFFSETS, 5, "ListOffsetsPartition", partition_index=index, timestamp=1_000)
        for index in range(5_000)
    )
    names = make_topics(client, 20, 5_000)
    topics = tuple(made(LIST_OFFSETS, 5, "ListOffsetsTopic", name=name, partitions=asked) for name in names)
    return [frame(LIST_OFFSETS, 5, replica_id=-1, topics=topics)]


def produce_frame(names: Sequence[str], partitions: int, records: bytes) -> bytes:
    asked = tuple(
        made(PRODUCE, 7, "PartitionProduceData", index=index, records=records) for index in range(partitions)
    )
    topics = tuple(made(PRODUCE, 7, "TopicProduceData", name=name, partition_data=asked) for name in names)
    return frame(PRODUCE, 7, transactional_id=None, acks=-1, topic_data=topics)


def batch(values: Sequence[bytes], compression: int = 0) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, -1, 1_000_000_000)
    for offset, value in enumerate(values):
        builder.append(offset, 1_000, None, value, [])
    return bytes(builder.build())


@case("Produce, 20,000 partitions, a batch each")
def _(client: Client) -> Iterable[bytes]:
    return [produce_frame(make_topics(client, 4, 5_000), 5_000, batch([b"x" * 100]))]


@case("Produce, 1 MB of gzip that unpacks to 900 MB")
def _(client: Client) -> Iterable[bytes]:
    return [produce_frame(make_topics(client, 1), 1, batch([bytes(900_000_000)], 1))]


@case("Produce, gzip of 100,000 records, 20 times")
def _(client: Client) -> Iterable[bytes]:
    return [produce_frame(make_topics(client, 1, 20), 20, batch([b"x"] * 100_000, 1))]


@case("Produce and Fetch, 50 batches of 1 MB")
def _(client: Client) -> Iterable[bytes]:
    names, read = make_topics(client, 1, 50), {"max_bytes": 100_000_000, "partition_max_bytes": 2_000_000}
    return [produce_frame(names, 50, batch([bytes(1_000_000)])), _fetch(names, 50, **read)]
