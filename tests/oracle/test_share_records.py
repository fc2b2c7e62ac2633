"""`./dev oracle share-records`: what its cases meet, how a difference is told, and Kafka's SharePartition."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from groupstorm.share_records.states import RecordState
from tests.needs import needed
from tests.oracle.build import build_share_records
from tests.oracle.jvm import Jvm
from tests.oracle.share_records import KAFKA, compare, draw, play
from tests.soaking import sizes


def _ours(line: str) -> str:
    return json.dumps({"answers": play(json.loads(line))})


def test_cases_meet_every_state_answer_and_call() -> None:
    met: Counter[str] = Counter()
    for number in range(60):
        case = draw(1, number)
        assert case == draw(1, number)
        met["aborted"] += sum(operation[0] == "acquire" and bool(operation[6]) for operation in case["ops"])
        for answer in play(case):
            met[answer["result"]] += 1
            met.update(error for _, error in answer["done"])
            met.update(one[0] if one[0] == "write" else one[4] for one in answer["asked"])
            met.update(one.split()[0] for batch in answer["batches"] for one in batch[2:])
    calls = ("write", "aborted", "CLIENT_REJECT", "DELIVERY_COUNT_EXCEEDED", "thrown")
    errors = ("INVALID_RECORD_STATE", "INVALID_REQUEST", "NONE", "COORDINATOR_NOT_AVAILABLE")
    assert [one for one in (*calls, *errors, *RecordState.__members__) if not met[one]] == []


def test_equal_answers_are_no_difference() -> None:
    assert list(compare(_ours, 20, seed=2)) == [None] * 20


def test_a_difference_has_the_case_up_to_its_operation_and_both_answers() -> None:
    def other(line: str) -> str:
        answers = play(json.loads(line))
        answers[2]["complete"] += 1
        return json.dumps({"answers": answers})

    (found,) = compare(other, 1, seed=2)
    assert found is not None
    assert len(found.case["ops"]) == 2
    assert found.kafkas == {**found.ours, "complete": found.ours["complete"] + 1}
    assert str(found).splitlines()[1].startswith("Kafka: {")


def test_records_in_front_of_the_start_are_not_buried_at_their_locks_end() -> None:
    """Kafka follows a null reference as it looks for the new start, and forgets the dead letters."""
    case = {
        "limit": 2,
        "locks": 8,
        "lock_ms": 30_000,
        "dead_letters": True,
        "stored": {"start": 0, "batches": [[0, 3, "AVAILABLE", 1]]},
        "ops": [
            ["persister", "hold"],
            ["acquire", "a", True, 1, 1, [[0, 3]], []],
            ["advance", 30_000],
            ["log_start", 5],
            ["answer", "NONE"],
        ],
    }
    *_, last = play(case)
    archiving, *others = ("ARCHIVING 2  -1 false", *["ARCHIVED 1  -1 false"] * 3)
    assert (last["asked"], last["batches"]) == ([], [[0, 3, archiving, *others]])


@pytest.mark.slow
@pytest.mark.parametrize("cases", sizes(200, 10_000, within_minutes=60))
def test_records_are_in_flight_as_kafkas_are(cases: int) -> None:
    with needed():
        built = build_share_records(KAFKA)
    with Jvm(built, "share-records") as kafka:
        differences = [found for found in compare(kafka.ask, cases, seed=5) if found is not None]
    assert not differences, str(differences[0])
