"""Whether a group keeps up with what arrives: its figures at the end of a run say so."""

from __future__ import annotations

from typing import Final

from groupstorm.figures.table import Figures

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


def overload_sentence(growth: float) -> str:
    shown = f"{growth:,.0f}" if growth >= 1 else f"{growth:.1f}"
    return f"at the end the lag still grew by {shown} records a second: less is processed than arrives"
