"""Histories and reports as JSON, and failing histories as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from groupstorm.assignors.check.checking import Finding, Report
from groupstorm.assignors.check.history import Change, History, HistoryStep, StepKind, play
from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.userdata import TopicPartition

#: A line names up to so many partitions; of more it has the number.
_NAMED = 16


def history_to_json(history: History) -> dict[str, Any]:
    """``{"topics": {name: partitions}, "steps": [{"do", "member", "topics", "partitions"}]}``."""
    return {"topics": dict(history.topics), "steps": [step_to_json(step) for step in history.steps]}


def step_to_json(step: HistoryStep) -> dict[str, Any]:
    """``{"do", "member", "topics", "partitions"}``, without the fields that the step does not have."""
    written: dict[str, Any] = {"do": step.do.value}
    if step.member:
        written["member"] = step.member
    if step.topics:
        written["topics"] = list(step.topics)
    if step.do is StepKind.RESIZE:
        written["partitions"] = step.partitions
    if step.with_next:
        written["with_next"] = True
    return written


def history_from_json(written: Mapping[str, Any]) -> History:
    """The history that `history_to_json` wrote."""
    steps = (
        HistoryStep(
            StepKind(step["do"]),
            step.get("member", ""),
            tuple(step.get("topics", ())),
            step.get("partitions", 0),
            step.get("with_next", False),
        )
        for step in written["steps"]
    )
    return History(dict(written["topics"]), tuple(steps))


def report_to_json(report: Report) -> dict[str, Any]:
    """The report; every finding with its smallest failing history, if there is one."""
    return {
        "assignor": report.assignor,
        "kept": report.kept,
        "histories": report.histories,
        "rounds": report.rounds,
        "most_rounds_for_a_change": report.most_rounds,
        "stickiness": report.stickiness._asdict(),
        "properties": [_finding_to_json(finding) for finding in report.findings],
    }


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    written: dict[str, Any] = {
        "property": finding.name,
        "verdict": finding.verdict.value,
        "asked": finding.asked,
        "failed": finding.failed,
    }
    if finding.broken is not None and finding.history is not None:
        written["why"] = finding.broken.sentence
        written["step"] = finding.broken.step
        written["history"] = history_to_json(finding.history)
    return written


def render_finding(assignor: Assignor, finding: Finding) -> Iterator[str]:
    """The finding's smallest failing history, played once more: every step, and each member's partitions."""
    if finding.broken is None or finding.history is None:
        return
    yield render_topics(finding.history)
    for change in play(assignor, finding.history):
        yield from render_change(change)
        if change.number == finding.broken.step:
            break
    yield f"=> {finding.broken.sentence}"


def render_topics(history: History) -> str:
    """The topics at the beginning of the history."""
    sizes = ", ".join(f"{name} with {_count(size)}" for name, size in history.topics.items())
    return f"there is {sizes or 'no topic'}"


def render_change(change: Change) -> Iterator[str]:
    """The step, and for each round the partitions that every member had and gets."""
    yield f"{change.number}. {change.step}"
    yield from _render_rounds(change)


def _count(partitions: int) -> str:
    return f"{partitions} partition{'' if partitions == 1 else 's'}"


def _render_rounds(change: Change) -> Iterator[str]:
    for number, round_ in enumerate(change.rounds, start=1):
        place = f"round {number}: " if len(change.rounds) > 1 else ""
        if round_.refusal is not None:
            yield f"     {place}no answer: {round_.refusal}"
            continue
        for member in round_.subscriptions:
            had = listed(round_.owned[member]) if any(round_.owned.values()) else _before(change, member)
            given = listed(round_.assigned.get(member, ()))
            yield f"     {place}{member} had {had}, gets {given}"


def _before(change: Change, member: str) -> str:
    return listed([partition for partition, owner in change.before.items() if owner == member])


def listed(partitions: Iterable[TopicPartition]) -> str:
    """Partitions by their names; if there are many, their number."""
    in_order = sorted(partitions)
    if not in_order:
        return "nothing"
    if len(in_order) > _NAMED:
        return _count(len(in_order))
    return ", ".join(map(str, in_order))
