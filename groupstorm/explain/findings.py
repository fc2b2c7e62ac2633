"""Patterns, the matches of their rules in a history, and the members who began rebalances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from groupstorm.explain.history import History
from groupstorm.history.rebalances import Absence, Rebalance, Row

#: A failure that cost less than this part of all rebalances does not come before the changes.
FAILURE_MIN: Final = 0.01
#: So many rows or lines are quoted for a pattern: the first ones, and the last.
EVIDENCE_MAX = 4


@dataclass(slots=True)
class Match:
    """A match of a rule: a sentence, the members behind it, and the rebalances and absences that it explains.

    ``partitions``: those behind it, if they are more to blame than the members, with their positions.
    ``evidence``: the rows that show it, in their order. ``unknown``: what the rule would need to say more,
    and which log says it; "" if nothing. ``down_us``: for how long tasks of Kafka Streams were down, which is
    no time without an owner while their state is restored.
    """

    sentence: str
    members: Sequence[str] = ()
    rebalances: Sequence[Rebalance] = ()
    absences: Sequence[Absence] = ()
    evidence: Sequence[Row] = ()
    unknown: str = ""
    partitions: Sequence[str] = ()
    down_us: int = 0


Rule = Callable[[History], Match | None]


class Kind(IntEnum):
    """The kinds of patterns, in the order in which somebody on call asks."""

    #: Something is set or written wrongly, and stays so until somebody acts.
    DEFECT = 0
    #: Something broke, or was too slow.
    FAILURE = 1
    #: Somebody changed the group on purpose, or it does what its protocol does.
    CHANGE = 2
    #: The group was not to run: what it costs disturbs nobody.
    STOP = 3


class Pattern(NamedTuple):
    """``name``: stable, for --json. ``advice``: which setting to turn. ``presets``: those that show it."""

    name: str
    title: str
    rule: Rule
    advice: str
    presets: tuple[str, ...]
    kind: Kind


@dataclass(slots=True)
class Finding:
    """A pattern that a history has. Its rebalances and absences are in no other finding, so that costs add
    up.

    ``shared``: rebalances that the rule matched and that a more specific pattern explains.
    """

    pattern: Pattern
    match: Match
    rebalances: list[Rebalance] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    shared: int = 0

    @property
    def unowned_us(self) -> int:
        return sum(one.unowned_us for one in self.rebalances) + sum(one.unowned_us for one in self.absences)

    @property
    def lasted_us(self) -> int:
        return sum(one.lasted_us for one in self.rebalances)


def quoted(rows: Iterable[Row]) -> list[Row]:
    """The first rows and the last, in their order, each once."""
    unique = sorted({row["seq"]: row for row in rows}.values(), key=lambda row: int(row["seq"]))
    return unique if len(unique) <= EVIDENCE_MAX else [*unique[: EVIDENCE_MAX - 1], unique[-1]]


def find(history: History, patterns: Iterable[Pattern]) -> list[Finding]:
    """The patterns that ``history`` has by their kind, of each kind the costliest first.

    ``patterns``: the specific ones first. A rebalance that several explain belongs to the first of them. The
    cost is the time without an owner, or the time in rebalances if nobody knows who owned what, or that in
    which tasks were down. Failures that cost next to nothing come among the changes.
    """
    found: list[Finding] = []
    rebalances: set[int] = set()
    absences: set[int] = set()
    for pattern in patterns:
        match = pattern.rule(history)
        if match is None:
            continue
        finding = Finding(pattern, match)
        for rebalance in {one.number: one for one in match.rebalances}.values():
            if rebalance.number in rebalances:
                finding.shared += 1
            else:
                rebalances.add(rebalance.number)
                finding.rebalances.append(rebalance)
        for absence in match.absences:
            if id(absence) not in absences:
                absences.add(id(absence))
                finding.absences.append(absence)
        found.append(finding)
    known = history.unowned_us is not None

    def cost_us(one: Finding) -> int:
        return max(one.unowned_us if known else one.lasted_us, one.match.down_us)

    least_us = FAILURE_MIN * sum(cost_us(one) for one in found if one.pattern.kind is not Kind.STOP)

    def rank(one: Finding) -> tuple[Kind, int, int]:
        small = one.pattern.kind is Kind.FAILURE and cost_us(one) < least_us
        return Kind.CHANGE if small else one.pattern.kind, -cost_us(one), -one.lasted_us

    return sorted(found, key=rank)


@dataclass(slots=True)
class Culprit:
    """``member`` is "" if no row names one. ``patterns``: those that explain all but ``unexplained`` ones."""

    cause: str
    member: str
    rebalances: list[Rebalance] = field(default_factory=list)
    patterns: dict[str, None] = field(default_factory=dict)
    unexplained: int = 0

    @property
    def is_known(self) -> bool:
        """Whether rows say who began them, or why, or a pattern does."""
        return bool(self.member or self.patterns) or self.cause not in ("", "unknown")

    @property
    def unowned_us(self) -> int:
        return sum(one.unowned_us for one in self.rebalances)

    @property
    def lasted_us(self) -> int:
        return sum(one.lasted_us for one in self.rebalances)


def pattern_of(findings: Iterable[Finding]) -> dict[int, str]:
    """Number of a rebalance -> the name of the pattern that explains it."""
    return {one.number: finding.pattern.name for finding in findings for one in finding.rebalances}


def culprits(rebalances: Iterable[Rebalance], findings: Iterable[Finding]) -> list[Culprit]:
    """The rebalances by what began them and who."""
    names = pattern_of(findings)
    found: dict[tuple[str, str], Culprit] = {}
    for one in rebalances:
        culprit = found.setdefault((one.cause, one.culprit), Culprit(one.cause, one.culprit))
        culprit.rebalances.append(one)
        if one.number in names:
            culprit.patterns[names[one.number]] = None
        else:
            culprit.unexplained += 1
    return sorted(found.values(), key=lambda one: (-one.unowned_us, -one.lasted_us, -len(one.rebalances)))
