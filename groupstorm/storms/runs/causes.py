"""The cause for which a group cannot come to rest, and the cost, in words."""

from __future__ import annotations

from typing import Final

from groupstorm.figures import Figures
from groupstorm.figures.unsettled import lag_growth
from groupstorm.storms.runs.contradictions import endless_work
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.setting_names import STREAMS
from groupstorm.wording import counted, listed, seconds

#: The timeout that a finding names, by the rule that says why it was outlasted; of other rules the interval.
_TIMEOUTS: Final = {"silent rounds": "session.timeout.ms", "fatal record": ""}


def cause_of(scenario: ResolvedScenario, found: str) -> str:
    """The record or the setting that keeps the group from coming to rest.

    "" if no arithmetic says it, or if the finding ``found`` is about another timeout.
    """
    if scenario.settings.choice("application") == STREAMS:
        return ""
    return "; ".join(
        one.sentence
        for one in endless_work(scenario.settings)
        if _TIMEOUTS.get(one.rule, "max.poll.interval.ms") in found
    )


def cost_of(figures: Figures) -> str:
    """The cost of a group that does not come to rest, by the end of its run."""
    parts = []
    if figures.unowned_partition_seconds:
        parts.append(f"{seconds(figures.unowned_partition_seconds)} without an owner, over all partitions")
    if figures.dual_owner_seconds:
        parts.append(f"{seconds(figures.dual_owner_seconds)} with two owners")
    if figures.records_duplicated:
        parts.append(f"{counted(figures.records_duplicated, 'record')} processed again")
    if figures.staleness_max_seconds:
        oldest = seconds(figures.staleness_max_seconds)
        where = figures.staleness_worst_partition
        parts.append(f"a record{f' of {where}' if where else ''} that waited {oldest}")
    growth = lag_growth(figures)
    if growth is not None:
        parts.append(f"a lag that still grows by {growth:,.0f} records a second")
    return f"it costs {listed(parts)}" if parts else "it costs nothing yet"
