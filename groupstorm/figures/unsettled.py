"""Verdicts on a configuration: it keeps the group from coming to rest, by the invariants, or from keeping up
with the records that arrive, by the figures at the end of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from groupstorm.figures.table import Figures
from groupstorm.wording import counted

#: The verdict on an invariant while it holds; anything else is the violation in a sentence.
HELD: Final = "held"

PARKED: Final = "parked_requests_answered"
OWNED_AT_END: Final = "every_partition_owned_at_end"
SETTLES: Final = "group_settles"

#: Begin the verdict on `SETTLES` if the configuration is to blame.
LIVELOCK: Final = "livelock"
NEVER_AT_REST: Final = "never at rest"
SETTLED_LATE: Final = "settled late"
FINDINGS: Final = (LIVELOCK, NEVER_AT_REST, SETTLED_LATE)

#: Broken because of a group that has not settled: requests wait for a round, partitions for an owner.
CONSEQUENCES: Final = frozenset({SETTLES, PARKED, OWNED_AT_END})


def finding(verdicts: Mapping[str, str]) -> str | None:
    """The sentence on a configuration that cannot settle, without which the run's invariants held.

    None if they all held, or if one broke that no configuration breaks.
    """
    broken = {name for name, verdict in verdicts.items() if verdict != HELD}
    sentence = verdicts.get(SETTLES, HELD)
    return sentence if sentence.startswith(FINDINGS) and broken <= CONSEQUENCES else None


def verdict_on(found: str) -> str:
    """A finding in words, without its reason."""
    return "settles late" if found.startswith(SETTLED_LATE) else "cannot settle"


#: From how many records a second on the lag counts as growing; in a share group, whose records may take
#: seconds each, also from this part of the records that are done.
NOTICED: Final = 1
NOTICED_SHARE: Final = 0.1

#: While no record has waited for so long, the lag only goes up and down between polls.
LEAST_STALENESS_S: Final = 5


def lag_growth(figures: Figures) -> float | None:
    """Records a second by which the lag still grows at the end; None if the group keeps up."""
    growth, oldest_s = figures.lag_growth_per_second, figures.staleness_max_seconds
    noticed = min(NOTICED, (figures.records_per_second or NOTICED / NOTICED_SHARE) * NOTICED_SHARE)
    if growth is None or growth < noticed or (oldest_s is not None and oldest_s < LEAST_STALENESS_S):
        return None
    return growth


def grows_in_most(runs: Sequence[Figures]) -> bool:
    """Whether most of these seeds end with a lag that grows: one may end while a slow record is in hand."""
    return 2 * sum(lag_growth(figures) is not None for figures in runs) > len(runs)


def overload_sentence(growth: float) -> str:
    shown = counted(round(growth), "record") if growth >= 1 else f"{growth:.1f} records"
    return f"at the end the lag still grew by {shown} a second: less is processed than arrives"
