"""The order in which a request is worked on, where it decides who gets a record. Read in Kafka's classes."""

from __future__ import annotations

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
