"""A picture as lines for people, and as JSON: one object for each group."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from groupstorm.watch.group import GroupPicture
from groupstorm.watch.watching import MICROSECONDS, Picture
from groupstorm.wording import counted, number, seconds

_NO_ASSIGNMENT: Final = "not every partition has had an owner yet"
_SHARED: Final = "nobody owns a partition of a share group"
_NO_RECORDS: Final = "no row says what members have processed"


def heading(picture: Picture, span_us: int) -> str:
    """Which time the figures are of, and which rows are not in them."""
    if not picture.groups:
        return "no rows yet"
    parts = [f"last {seconds(picture.length_us(span_us) / MICROSECONDS)}"]
    parts.append(f"until {seconds(picture.end_us / MICROSECONDS)} of the trace")
    if picture.quiet_seconds >= 1:
        parts.append(f"the last row came {seconds(picture.quiet_seconds)} ago")
    if picture.missing:
        parts.append(f"{counted(picture.missing, 'row')} of files that are late")
    if picture.too_late:
        parts.append(f"{counted(picture.too_late, 'row')} came too late to count")
    return ", ".join(parts)


def group_line(one: GroupPicture) -> str:
    figures = one.figures
    least = "at least " if one.are_least else ""
    parts = [
        f"{least}{counted(figures.generations, 'generation')}",
        _unowned(one),
        f"{least}{_rebalances(one)}",
    ]
    if one.culprit:
        parts.append(_culprit(one))
    parts.append(_staleness(one))
    return f"{one.group}: {'; '.join(parts)}"


def rebalances_by_cause(one: GroupPicture) -> Counter[str]:
    """The most frequent cause first."""
    found: Counter[str] = Counter()
    for (cause, _), count in one.begun.items():
        found[cause] += count
    return Counter(dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))))


def why_unowned_is_unknown(one: GroupPicture) -> str:
    """Why times without an owner are not known; "" if they are."""
    if one.figures.unowned_partition_seconds is not None:
        return ""
    return one.why or (_NO_ASSIGNMENT if one.figures.delivery_counts is None else _SHARED)


def _unowned(one: GroupPicture) -> str:
    figures, at_least = one.figures, "at least " if one.at_least else ""
    total, longest = figures.unowned_partition_seconds, figures.unowned_max_seconds
    if total is None or longest is None:
        text = f"un-owned unknown ({why_unowned_is_unknown(one)})"
    else:
        text = f"un-owned {at_least}{seconds(total)} in all"
    if total and longest:
        text += f", longest gap {at_least}{seconds(longest)} ({figures.unowned_worst_partition})"
    if one.now.unowned:
        text += f", {counted(len(one.now.unowned), 'partition')} now"
    return text


def _rebalances(one: GroupPicture) -> str:
    causes = rebalances_by_cause(one)
    text = counted(sum(causes.values()), "rebalance")
    return f"{text}: {', '.join(f'{count:,} {cause}' for cause, count in causes.items())}" if causes else text


def _culprit(one: GroupPicture) -> str:
    unowned_us, count = one.cost_of(one.culprit)
    if one.begun.total() == 1:
        return f"begun by {one.culprit}"
    if unowned_us:
        at_least = "at least " if one.at_least else ""
        return f"those of {one.culprit} cost most, {at_least}{seconds(unowned_us / MICROSECONDS)} un-owned"
    as_many = sum(one.cost_of(member)[1] == count for member in {member for _, member in one.begun if member})
    if as_many > 1:
        return f"{as_many:,} members began most, {count:,} each"
    return f"{one.culprit} began most, {count:,}"


def _staleness(one: GroupPicture) -> str:
    """The age of the oldest record that waits and the lag, at their worst and now."""
    if one.now.staleness_us is None:
        return f"staleness unknown ({_NO_RECORDS})"
    worst, peak = one.figures.staleness_max_seconds, one.figures.lag_peak
    text = f"staleness {seconds(one.now.staleness_us / MICROSECONDS)} now"
    if worst is not None:
        text += f" (at most {seconds(worst)})"
    if one.now.waiting is not None:
        text += f", lag {number(one.now.waiting)} records now"
        text += "" if peak is None else f" (at most {number(peak)})"
    return text


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
