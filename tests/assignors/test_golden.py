"""Our answers are Kafka's, lists in order (golden/README.md says where they come from)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from groupstorm.assignors.cases import answers
from tests.oracle.assignors import golden
from tests.oracle.assignors.differential import Verdict
from tests.oracle.assignors.report import transcript
from tests.oracle.assignors.sides import CONSUMER, SERVER, MembersSide
from tests.oracle.choosing import Golden

GOLDEN = Path(__file__).parent / "golden"


def _lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def _pairs(name: str) -> list[tuple[str, str]]:
    return list(zip(_lines(f"{name}.cases.jsonl"), _lines(f"{name}.kafka-4.3.1.jsonl"), strict=True))


@pytest.mark.parametrize("name", ["assign-consumer", "three-rounds"])
def test_answers_equal_kafkas(name: str) -> None:
    pairs = _pairs(name)
    ours = list(answers(case.encode() for case, _ in pairs))
    differing = [
        f"case {case}\nours {mine}\nKafka {kafkas}"
        for (case, kafkas), mine in zip(pairs, ours, strict=True)
        if json.loads(mine) != json.loads(kafkas)
    ]
    assert not differing, f"{len(differing)} of {len(pairs)} differ:\n" + "\n\n".join(differing[:3])


def test_unequal_subscriptions_can_take_a_third_round() -> None:
    """Four joins of one cooperative group after one change: 20, 27, 28 and 28 of 28 partitions owned."""
    kafkas = [json.loads(line) for line in _lines("three-rounds.kafka-4.3.1.jsonl")]
    assert [sum(map(len, answer["assignment"].values())) for answer in kafkas] == [20, 27, 28, 28]
    assert not any(answer["constrained"] for answer in kafkas)


_RANDOM = {side.command: list(golden.read(side)) for side in (CONSUMER, SERVER)}

#: Forms of Kafka's algorithms, each of which many golden cases have to run.
_FORMS = {
    "consumer": {("range", "plain"), ("range", "plain, racks"), ("roundrobin", "plain"),
                 ("sticky", "constrained"), ("sticky", "constrained, racks"), ("sticky", "general"),
                 ("sticky", "general, racks"), ("cooperative-sticky", "constrained"),
                 ("cooperative-sticky", "constrained, racks"), ("cooperative-sticky", "general"),
                 ("cooperative-sticky", "general, racks")},
    "server": {("uniform", "homogeneous"), ("uniform", "heterogeneous"), ("range", "homogeneous"),
               ("range", "heterogeneous")},
}  # fmt: skip
_CASES_OF_A_FORM = 30
#: What Kafka refuses some of them with.
_REFUSALS = {
    "consumer": {"IllegalStateException", "NullPointerException"},
    "server": {"PartitionAssignorException", "ArrayIndexOutOfBoundsException"},
}

both_sides = pytest.mark.parametrize("side", [CONSUMER, SERVER], ids=lambda side: side.command)


@both_sides
def test_random_cases_are_answered_as_kafka_answers_them(side: MembersSide) -> None:
    """With bug_compat always, without it where Kafka's answer is valid; elsewhere ours is valid."""
    wrong: list[tuple[Golden, Verdict]] = []
    for one in _RANDOM[side.command]:
        verdict = side.judge(one.case, one.answer)
        if verdict.wrong:
            wrong.append((one, verdict))
    assert not wrong, "\n\n".join(transcript(one.case, verdict) for one, verdict in wrong[:3])


@both_sides
def test_the_golden_cases_run_every_form(side: MembersSide) -> None:
    """And are refused for every reason: a file without them would prove little."""
    listed = _RANDOM[side.command]
    forms = Counter((one.case["assignor"], side.form(one.case, one.answer)) for one in listed)
    assert [form for form in _FORMS[side.command] if forms[form] < _CASES_OF_A_FORM] == []
    assert {one.answer["error"] for one in listed if "error" in one.answer} == _REFUSALS[side.command]
    assert any(not side.is_valid(one.case, one.answer) and "error" not in one.answer for one in listed), (
        "Kafka also gives answers that are no valid assignment"
    )


@both_sides
def test_the_files_stay_small(side: MembersSide) -> None:
    assert golden.CASES * 0.8 <= len(_RANDOM[side.command]) <= golden.CASES
    assert golden.path(side).stat().st_size <= golden.BYTES_MAX
