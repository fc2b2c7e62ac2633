"""A picture as JSON: one object for each group."""

from __future__ import annotations

from collections import Counter
from typing import Any

from groupstorm.watch.group import GroupPicture
from groupstorm.watch.watching import MICROSECONDS, Picture
from groupstorm.watch.wording import rebalances_by_cause, why_unowned_is_unknown


def group_as_json(one: GroupPicture, picture: Picture, span_us: int) -> dict[str, Any]:
    """The figures of a group over a span, and how it is now; null if it is not known."""
    now = one.now
    culprits: Counter[str] = Counter()
    for (_, member), count in one.begun.items():
        if member:
            culprits[member] += count
    return {
        "group": one.group,
        "window_seconds": picture.length_us(span_us) / MICROSECONDS,
        "until_seconds": picture.end_us / MICROSECONDS,
        "last_row_age_seconds": round(picture.quiet_seconds, 3),
        "missing_rows": picture.missing,
        "rows_too_late": picture.too_late,
        "unowned_is_lower_bound": one.at_least,
        "unowned_is_unknown": why_unowned_is_unknown(one) or None,
        "unowned_now": None if now.unowned is None else sorted(now.unowned),
        "rebalances": dict(rebalances_by_cause(one)),
        "rebalances_by_culprit": dict(sorted(culprits.items(), key=lambda item: (-item[1], item[0]))),
        "culprit": one.culprit or None,
        "staleness_seconds": None if now.staleness_us is None else now.staleness_us / MICROSECONDS,
        "lag_records": None if now.waiting is None else round(now.waiting),
        "figures": one.figures.to_json(),
    }
