"""The order in which a request is worked on, where it decides who gets a record. Read in Kafka's classes."""

from __future__ import annotations

from groupstorm.share_records.ports import TopicPartition
from groupstorm.share_records.sessions import in_hash_order
from tests.share_records.scripts import acquired, of_kind, run


def test_waiting_fetches_get_what_was_released_before_the_session_ends() -> None:
    """SharePartitionManager.acknowledge tries them; only then does KafkaApis release the rest."""
    events = run(
        {"op": "produce", "p": "foo-0", "batches": [[4]]},
        {"op": "fetch", "as": "a", "wait": 0},
        {"op": "fetch", "as": "b", "wait": 500},
        {"op": "ack", "as": "a", "epoch": -1, "acks": {"foo-0": [[0, 0, "release"]]}},
    )
    answers = {event["as"]: acquired(event) for event in of_kind(events, "fetch")}
    assert answers == {"a": [[0, 3, 1]], "b": [[0, 0, 2]]}


def test_the_logs_start_inside_a_batch_whose_release_is_under_way() -> None:
    """Its records keep the lock when the batch is split, and InFlightState refuses a second one."""
    events = run(
        {"op": "produce", "p": "foo-0", "batches": [[2]]},
        {"op": "fetch", "as": "a", "wait": 0},
        {"op": "produce", "p": "foo-0", "batches": [[8]]},
        {"op": "fetch", "as": "a", "wait": 0},
        {"op": "ack", "as": "a", "acks": {"foo-0": [[0, 1, "release"]]}},
        {"op": "persister", "write": "hold"},
        {"op": "ack", "as": "a", "acks": {"foo-0": [[2, 9, "release"]]}},
        {"op": "delete_records", "p": "foo-0", "to": 5},
        {"op": "fetch", "as": "b", "wait": 0},
        {"op": "fetch", "as": "b", "wait": 0},
    )
    errors = [part["error"] for event in of_kind(events, "fetch") for part in event["parts"]]
    assert errors == ["NONE", "NONE", "NONE", "UNKNOWN_SERVER_ERROR"]


def test_partitions_of_an_answer_stand_by_bucket_and_then_by_signed_hash() -> None:
    """A bucket: the last four bits of the hash, xored with its upper half. 16 buckets hold 11 partitions."""
    hashes = {0: 0x00000015, 1: 0xF0000005, 2: 0x00000005, 3: 0x00000004, 4: 0x00010000}
    # spread: 0x15 and 0x5 in bucket 5, 0xF000F005 too and negative, 0x4 in bucket 4, 0x10001 in bucket 1
    order = in_hash_order(
        [TopicPartition("foo", number) for number in hashes], lambda one: hashes[one.partition]
    )
    assert [one.partition for one in order] == [4, 3, 1, 2, 0]
    many = in_hash_order(
        [TopicPartition("foo", 17 - number) for number in range(12)], lambda one: one.partition
    )
    assert [one.partition for one in many] == list(range(6, 18)), "32 buckets: 16 and 17 come last"


def test_a_batch_larger_than_its_share_leaves_less_for_the_next_partition() -> None:
    """ReplicaManager.readFromLog: the first batch is read whole, and the others have what is left."""
    events = run(
        {"op": "produce", "p": "foo-0", "batches": [[1, 150]]},
        {"op": "produce", "p": "foo-1", "batches": [[1, 60]]},
        {"op": "fetch", "as": "a", "wait": 0, "max_bytes": 200},
        {"op": "fetch", "as": "b", "wait": 0, "max_bytes": 220},
        topics={"foo": 2},
    )
    first, second = of_kind(events, "fetch")
    assert (acquired(first, "foo-0"), acquired(first, "foo-1")) == ([[0, 0, 1]], [])
    assert acquired(second, "foo-1") == [[0, 0, 1]]
