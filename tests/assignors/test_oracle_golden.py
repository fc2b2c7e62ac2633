"""Kafka's answers to random cases (`./dev oracle consumer|server --write-golden`): ours are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.oracle.assignors import golden
from tests.oracle.assignors.differential import Verdict
from tests.oracle.assignors.golden import Golden
from tests.oracle.assignors.report import transcript
from tests.oracle.assignors.sides import CONSUMER, SERVER, MembersSide

_GOLDEN = {side.command: list(golden.read(side)) for side in (CONSUMER, SERVER)}

#: Forms of Kafka's algorithms, each of which many golden cases have to run.
_FORMS = {
    "consumer": {
        ("range", "plain"),
        ("range", "plain, racks"),
        ("roundrobin", "plain"),
        ("sticky", "constrained"),
        ("sticky", "constrained, racks"),
        ("sticky", "general"),
        ("sticky", "general, racks"),
        ("cooperative-sticky", "constrained"),
        ("cooperative-sticky", "constrained, racks"),
        ("cooperative-sticky", "general"),
        ("cooperative-sticky", "general, racks"),
    },
    "server": {
        ("uniform", "homogeneous"),
        ("uniform", "heterogeneous"),
        ("range", "homogeneous"),
        ("range", "heterogeneous"),
    },
}
_CASES_OF_A_FORM = 30
#: What Kafka refuses some of them with.
_REFUSALS = {
    "consumer": {"IllegalStateException", "NullPointerException"},
    "server": {"PartitionAssignorException", "ArrayIndexOutOfBoundsException"},
}

both_sides = pytest.mark.parametrize("side", [CONSUMER, SERVER], ids=lambda side: side.command)


@both_sides
def test_answers_are_kafkas(side: MembersSide) -> None:
    """With bug_compat always, without it where Kafka's answer is valid; elsewhere ours is valid."""
    wrong: list[tuple[Golden, Verdict]] = []
    for one in _GOLDEN[side.command]:
        verdict = side.judge(one.case, one.answer)
        if verdict.wrong:
            wrong.append((one, verdict))
    assert not wrong, "\n\n".join(transcript(one.case, verdict) for one, verdict in wrong[:3])


@both_sides
def test_the_golden_cases_run_every_form(side: MembersSide) -> None:
    """And are refused for every reason: a file without them would prove little."""
    listed = _GOLDEN[side.command]
    forms = Counter((one.case["assignor"], side.form(one.case, one.answer)) for one in listed)
    assert [form for form in _FORMS[side.command] if forms[form] < _CASES_OF_A_FORM] == []
    assert {one.answer["error"] for one in listed if "error" in one.answer} == _REFUSALS[side.command]
    assert any(not side.is_valid(one.case, one.answer) and "error" not in one.answer for one in listed), (
        "Kafka also gives answers that are no valid assignment"
    )


@both_sides
def test_the_files_stay_small(side: MembersSide) -> None:
    assert golden.CASES * 0.8 <= len(_GOLDEN[side.command]) <= golden.CASES
    assert golden.path(side).stat().st_size <= golden.BYTES_MAX
