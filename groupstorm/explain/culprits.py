"""Who began the rebalances: grouped by cause and member, the costliest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from groupstorm.explain.findings import Finding
from groupstorm.explain.history import Rebalance


@dataclass(slots=True)
class Culprit:
    """``member`` is "" if no row names one. ``patterns``: the names of those that explain the rebalances."""

    cause: str
    member: str
    rebalances: list[Rebalance] = field(default_factory=list)
    patterns: dict[str, None] = field(default_factory=dict)

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
    return sorted(found.values(), key=lambda one: (-one.unowned_us, -one.lasted_us, -len(one.rebalances)))
