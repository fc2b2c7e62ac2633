"""Our answers are Kafka's (golden/README.md says where they come from)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.streams.cases import answers
from groupstorm.assignors.streams.threads import assign_to_threads
from tests.oracle.streams import golden
from tests.oracle.streams.comparison import answer, difference

GOLDEN = Path(__file__).parent / "golden"


def test_the_examples_are_answered_as_kafka_answers_them() -> None:
    cases = (GOLDEN / "assign-streams.cases.jsonl").read_bytes().splitlines()
    kafkas = (GOLDEN / "assign-streams.kafka-4.3.1.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(ours) for ours in answers(cases)] == [json.loads(line) for line in kafkas]


def test_random_cases_are_answered_as_kafka_answers_them() -> None:
    wrong = {}
    for case, kafkas in golden.read():
        found = difference(case, kafkas, answer(case))
        if found:
            wrong[case["id"]] = found
    assert wrong == {}


def test_tasks_that_were_moved_there_and_back_are_last_in_their_bucket() -> None:
    """KIP-924's assignment is a hash table, and threads get tasks in its order."""
    ((case, kafkas),) = golden.read(GOLDEN / "moved-there-and-back.kafka-4.3.1.jsonl")
    assert difference(case, kafkas, answer(case)) == ""


def test_the_random_cases_reach_what_is_hard() -> None:
    """Refusals, warm-ups, threads, both strategies: a golden file without them would prove little."""
    kafkas = [kafka for _, kafka in golden.read()]
    clients = [own for kafka in kafkas for own in kafka.get("clients", {}).values()]
    assert sum("error" in kafka for kafka in kafkas) >= 10
    assert sum(bool(own.get("warmup")) for own in clients) >= 15
    assert sum(bool(own.get("standby_warmup")) for own in clients) >= 10
    assert sum("threads" in own for own in clients) >= 100
    strategies = {case["config"]["strategy"] for case, _ in golden.read()}
    assert strategies == {"none", "min_traffic", "balance_subtopology"}


def test_loads_of_threads_that_are_too_far_apart_are_refused_as_in_kafka() -> None:
    """No case has them: Kafka counts on loads that it made itself."""
    with pytest.raises(AssignmentRefused, match="Ran out of unassigned stateful tasks"):
        assign_to_threads(range(1), ["c1", "c2", "c3"], {}, {"c1": 9, "c2": 0, "c3": 0})
