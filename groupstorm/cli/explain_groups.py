"""The groups of a trace beside each other, the worst first: before `groupstorm explain` says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from groupstorm.explain.explanation import Explanation
from groupstorm.explain.findings import Kind
from groupstorm.report.grid import Grid, Row
from groupstorm.wording import counted, seconds

_SECOND_US: Final = 1_000_000
_HOUR_US: Final = 3_600 * _SECOND_US
_ROWS_MAX: Final = 20
#: So many groups are explained in full.
_EXPLAINED_MAX: Final = 3


def worst_first(explanations: Sequence[Explanation]) -> list[Explanation]:
    """By what rebalances cost, then by the kind of their patterns."""
    return sorted(explanations, key=_rank)


def to_explain(ranked: Sequence[Explanation]) -> Sequence[Explanation]:
    """The worst groups of which there is something to say; the worst one in any case."""
    return [one for one in ranked[:_EXPLAINED_MAX] if one.findings or one.history.rebalances] or ranked[:1]


def groups_grid(ranked: Sequence[Explanation]) -> Grid:
    """A row for each group: its rebalances, their cost and its worst pattern."""
    begun_us = min(max(one.history.from_us, one.history.first_us) for one in ranked)
    hours = (ranked[0].history.to_us - begun_us) / _HOUR_US
    rows = [_row(one, hours) for one in ranked[:_ROWS_MAX]]
    notes = [f"In full below: {', '.join(one.history.group for one in to_explain(ranked))}."]
    if more := len(ranked) - len(rows):
        notes.insert(0, f"And {counted(more, 'group')} that cost less.")
    if len(to_explain(ranked)) < len(ranked):
        notes[-1] += " --group NAME shows another one."
    headings = ("group", "rebalances", "an hour", "in rebalances", "no owner", "worst pattern")
    return Grid(headings, rows, f"The worst of {counted(len(ranked), 'group')} first", notes, frozenset({4}))


def _row(one: Explanation, hours: float) -> Row:
    history = one.history
    count = sum(each.begun_us >= history.from_us for each in history.rebalances)
    unowned_us, least = _unowned_us(one), history.unowned_is_least or history.work.is_seen
    unowned = "unknown" if unowned_us is None else seconds(unowned_us / _SECOND_US)
    cells = (
        f"{'at least ' if history.rebalances_are_least and count else ''}{count:,}",
        f"{count / hours:,.1f}" if hours else "-",
        "unknown" if history.rebalances_are_least else seconds(_rebalancing_us(one) / _SECOND_US),
        f"{'at least ' if least and unowned_us else ''}{unowned}",
        one.findings[0].pattern.name if one.findings else "-",
    )
    return Row(history.group, cells)


def _rank(one: Explanation) -> tuple[int, int, int, str]:
    kind = one.findings[0].pattern.kind if one.findings else len(Kind)
    unowned_us = _unowned_us(one)
    stopped_us = sum(each.unowned_us for each in one.findings if each.pattern.kind is Kind.STOP)
    cost_us = _rebalancing_us(one) if unowned_us is None else unowned_us - stopped_us
    return -cost_us, kind, -len(one.history.rebalances), one.history.group


def _unowned_us(one: Explanation) -> int | None:
    """The time without an owner; of Kafka Connect that without a worker."""
    history = one.history
    return sum(each.lasted_us for each in history.work.gaps) if history.work.is_seen else history.unowned_us


def _rebalancing_us(one: Explanation) -> int:
    """A rebalance that did not end counts up to the end of the trace."""
    return sum(
        each.lasted_us if each.ended_us is not None else one.history.to_us - each.begun_us
        for each in one.history.rebalances
    )
