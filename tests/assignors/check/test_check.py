"""The property report: the promises of our assignors hold, and faults are found with a small history."""

from __future__ import annotations

from itertools import count

import pytest

from groupstorm.assignors import registry
from groupstorm.assignors.check import properties
from groupstorm.assignors.check.checking import (
    Finding,
    GroupSize,
    Report,
    check,
    drawn,
    measure,
    transcript,
)
from groupstorm.assignors.check.history import History, HistoryStep, StepKind, play
from groupstorm.assignors.check.properties import Verdict
from groupstorm.assignors.check.rendering import (
    history_from_json,
    history_to_json,
    render_finding,
    report_to_json,
)
from groupstorm.assignors.contract import Assignor, MapOrder
from groupstorm.assignors.custom import adapt
from groupstorm.assignors.promises import BUILT_IN
from tests.assignors.check import faulty
from tests.soaking import one_in

#: What each of ours promises and does not keep.
NOT_KEPT = {
    "two-phase-sticky/pseudo-code": {properties.COMPLETE},
    "two-phase-sticky/java-sketch": {properties.COMPLETE, properties.BALANCE},
}


def report_on(assignor: Assignor, count: int = 30, seed: int = 0) -> Report:
    return check(assignor, drawn(assignor, seed, count))


def broken(report: Report) -> set[str]:
    return {finding.name for finding in report.findings if finding.verdict is Verdict.BROKEN}


def found(report: Report, name: str) -> Finding:
    return next(finding for finding in report.findings if finding.name == name)


def test_every_assignor_of_ours_promises_something() -> None:
    assert list(BUILT_IN) == registry.names()


@pytest.mark.parametrize("name", one_in(2, BUILT_IN))
def test_ours_keep_what_they_promise_but_for_the_sketches(name: str) -> None:
    report = report_on(registry.get(name))
    assert broken(report) == NOT_KEPT.get(name, set())
    assert report.most_rounds <= 3  # Kafka needs a third with unequal subscriptions (golden/three-rounds)
    assert all(finding.asked for finding in report.findings)
    if "optimal" in name:
        assert report.stickiness.changes > 50
        assert report.stickiness.moved == report.stickiness.fewest


@pytest.mark.parametrize("name", one_in(2, BUILT_IN))
def test_sorted_order_makes_an_answer_of_the_set_of_members(name: str) -> None:
    """`MapOrder.SORTED` promises it; claims that contradict each other are settled by who is asked first."""
    report = report_on(registry.get(name, order=MapOrder.SORTED), count=12, seed=1)
    assert found(report, properties.MEMBER_ORDER).failed == 0


def test_the_sketch_of_java_gives_4_4_2() -> None:
    """KAFKA-12464's own example: ten partitions, five with each of two members, and a third one joins."""
    join = [HistoryStep(StepKind.JOIN, member, ("t",)) for member in "abc"]
    history = History({"t": 10}, tuple(join))
    report = check(registry.get("two-phase-sticky/java-sketch"), [history])
    finding = found(report, properties.BALANCE)
    assert finding.verdict is Verdict.BROKEN
    *_, last = play(registry.get("two-phase-sticky/java-sketch"), history)
    assert [len(last.after[member]) for member in "abc"] == [4, 4, 2]
    assert finding.history is not None
    assert len(finding.history.steps) <= 3


@pytest.mark.slow
def test_kafkas_defects_are_found_with_bug_compat() -> None:
    """4.3.1: partitions that are gone make the constrained form throw; the general one keeps them."""
    report = report_on(registry.get("sticky", bug_compat=True), count=100)
    assert broken(report) == {properties.ANSWERS, properties.SUBSCRIBED}
    finding = found(report, properties.ANSWERS)
    assert finding.broken is not None
    assert "IllegalStateException" in finding.broken.sentence
    assert finding.history is not None
    assert [step.do for step in finding.history.steps] == [StepKind.JOIN, StepKind.RESIZE]


FAULTS = {
    faulty.throws_for_three: (properties.ANSWERS, 3, "two are enough (faulty.py, line"),
    faulty.gives_what_is_not_there: (properties.SUBSCRIBED, 1, "which does not exist"),
    faulty.gives_what_is_not_subscribed: (properties.SUBSCRIBED, 2, "has not subscribed to"),
    faulty.gives_twice: (properties.ONCE, 2, "is given to a and to b"),
    faulty.forgets_the_last: (properties.COMPLETE, 4, "without an owner"),
    faulty.grants_at_once: (properties.COOPERATIVE, 2, "before a has given it up"),
    faulty.never_settles: (properties.SETTLES, 2, "after 12 rounds"),
    faulty.piles_up: (properties.BALANCE, 2, "have 2/0: more than 1 apart"),
    faulty.moves_about: (properties.MOVES, 3, "would have done"),
    faulty.tears_apart: (properties.CO_PARTITIONED, 2, "is with"),
    faulty.answers_otherwise: (properties.DETERMINISTIC, 1, "the same question was answered otherwise"),
    faulty.first_come: (properties.MEMBER_ORDER, 2, "asked in the order b, a"),
}


@pytest.mark.parametrize("fault", one_in(2, FAULTS), ids=lambda fault: fault.__name__)
def test_a_fault_is_found_and_its_history_is_as_small_as_can_be(fault: object) -> None:
    name, steps, sentence = FAULTS[fault]  # type: ignore[index]
    assignor = adapt(fault, "the test")
    report = report_on(assignor, count=40)
    assert not report.kept
    assert name in broken(report)
    finding = found(report, name)
    assert finding.broken is not None
    assert sentence in finding.broken.sentence
    assert finding.history is not None
    assert len(finding.history.steps) == steps
    told = list(render_finding(assignor, finding))
    assert told[0].startswith("there is ")
    assert sum(line[0].isdigit() for line in told) == steps
    assert told[-1] == f"=> {finding.broken.sentence}"


def test_what_is_not_promised_fails_nothing_and_is_told() -> None:
    report = report_on(adapt(faulty.dealt, "the test"))
    assert report.kept
    for name in (properties.MOVES, properties.CO_PARTITIONED):
        finding = found(report, name)
        assert finding.verdict is Verdict.NOT_PROMISED
        assert finding.failed
        assert finding.history is not None


def test_another_process_that_answers_otherwise_breaks_determinism() -> None:
    assignor = adapt(faulty.dealt, "the test")

    def elsewhere(history: History) -> str:
        text = transcript(assignor, history)
        return text if len(history.steps) < 2 else text + " "

    report = check(assignor, drawn(assignor, 0, 20), [elsewhere])
    assert broken(report) == {properties.DETERMINISTIC}
    finding = found(report, properties.DETERMINISTIC)
    assert finding.history is not None
    assert len(finding.history.steps) == 2
    assert finding.broken is not None
    assert "another hash seed" in finding.broken.sentence


def test_an_assignor_that_never_answers_breaks_nothing_else_and_keeps_nothing() -> None:
    """Its refusals have other words each time."""
    numbers = count()
    assignor = adapt(lambda _topics, _members: next(numbers), "the test")
    report = check(assignor, drawn(assignor, 0, 20), [lambda history: transcript(assignor, history)])
    assert broken(report) == {properties.ANSWERS}
    for name in (properties.ONCE, properties.SETTLES, properties.DETERMINISTIC):
        assert found(report, name).verdict is Verdict.NEVER_ASKED


def test_a_clock_that_ticks_every_10_ms_measures_an_answer_of_1_ms() -> None:
    spent_ms = 0

    def answers_in_1_ms(*_: object) -> dict[str, list[object]]:
        nonlocal spent_ms
        spent_ms += 1
        return {}

    def clock_ns() -> int:
        return spent_ms // 10 * 10_000_000

    (row,) = measure(adapt(answers_in_1_ms, "the test"), clock_ns, [GroupSize(10, 10)])
    assert (row.empty_start_ms, row.one_more_ms, row.tenth_leaves_ms) == (1, 1, 1)


def test_the_same_seed_draws_the_same_histories_and_another_seed_others() -> None:
    assignor = registry.get("range")
    first = list(drawn(assignor, 7, 20))
    assert list(drawn(assignor, 7, 20)) == first
    assert list(drawn(assignor, 8, 20)) != first


def test_histories_and_reports_survive_json() -> None:
    for history in drawn(registry.get("range"), 3, 30):
        assert history_from_json(history_to_json(history)) == history
    report = report_on(adapt(faulty.piles_up, "the test"), count=10)
    written = report_to_json(report)
    assert written["kept"] is False
    balance = next(row for row in written["properties"] if row["property"] == properties.BALANCE)
    assert balance["history"]["topics"]
    assert balance["why"].startswith("members with equal subscriptions have")
