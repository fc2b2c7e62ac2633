"""Which rebalances and absences belong to members and times: what the rules share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from groupstorm.explain.history import History
from groupstorm.history.rebalances import Absence, Change, Rebalance, Row

SECOND_US: Final = 1_000_000
#: So long after what caused it a rebalance still belongs to it: a member comes back, and is told to rejoin.
AFTER_US: Final = 30 * SECOND_US


def concerned(rebalance: Rebalance) -> set[str]:
    """The members behind a rebalance: who began its rounds, who came and who went."""
    members = {one.member for one in rebalance.rounds} | {change.member for change in rebalance.changes}
    members.discard("")
    return members


def begun_by(history: History, members: Collection[str], from_us: int, to_us: int) -> list[Rebalance]:
    """Rebalances that began in a time, and that one of ``members`` began, came in or went in."""
    return [
        one
        for one in history.rebalances
        if from_us <= one.begun_us <= to_us and not concerned(one).isdisjoint(members)
    ]


def under_way(history: History, time_us: int) -> list[Rebalance]:
    """The rebalance in which the group was at that time."""
    return [one for one in history.rebalances if one.begun_us <= time_us <= one.until_us(history.to_us)]


def begins_after(rebalance: Rebalance, asked_us: int, within_us: int = SECOND_US) -> bool:
    """Whether one of its rounds began so soon after a member had asked for it."""
    return any(0 <= one.begun_us - asked_us <= within_us for one in rebalance.rounds)


def with_changes(history: History, changes: Iterable[Change]) -> list[Rebalance]:
    """Rebalances in which one of ``changes`` happened."""
    wanted = {(one.kind, one.row["seq"]) for one in changes}
    return [
        one
        for one in history.rebalances
        if any((change.kind, change.row["seq"]) in wanted for change in one.changes)
    ]


def away(history: History, members: Collection[str], from_us: int, to_us: int) -> list[Absence]:
    """Absences of ``members`` that began in a time."""
    return [one for one in history.absences if one.member in members and from_us <= one.from_us <= to_us]


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of their appearance, without empty ones."""
    return tuple(name for name in dict.fromkeys(names) if name)


def alive_rows(changes: Sequence[Change]) -> list[Row]:
    """For each member that went: its last row before, and the row that says that it went."""
    return [row for one in changes for row in (one.alive, one.row) if row is not None]
