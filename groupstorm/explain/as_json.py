"""An explanation as a JSON object with stable keys: times in microseconds, null for what is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.explain.explanation import Explanation
from groupstorm.explain.findings import Finding, pattern_of, quoted
from groupstorm.history.rebalances import Absence, Rebalance, Row

#: A row in the words of `groupstorm trace`.
Wording = Callable[[Row], str]


def as_json(one: Explanation, wording: Wording) -> dict[str, Any]:
    """One group. ``unowned_us`` is null if the trace does not say who owned what, ``lasted_us`` if it only
    has what descriptions of the group show."""
    history, known = one.history, one.history.unowned_us is not None
    timed = not history.rebalances_are_least
    names = pattern_of(one.findings)
    per_slice = one.baseline.per_slice
    return {
        "group": history.group,
        "from_us": history.from_us,
        "to_us": history.to_us,
        "rebalances": [_rebalance(each, names.get(each.number), known, timed) for each in history.rebalances],
        "rebalances_at_least": max(history.rebalances_at_least, len(history.rebalances)),
        "refusals": [
            {
                "member": each.member or None,
                "api": each.api,
                "error": each.error,
                "count": each.count,
                "first_us": each.first["time_us"],
                "last_us": each.last["time_us"],
                "is_over": each.is_over,
            }
            for each in history.refusals
        ],
        "absences": [_absence(each, known) for each in history.absences],
        "unowned_us": history.unowned_us,
        "unowned_is_lower_bound": history.unowned_is_least,
        "without_members": [
            {"from_us": from_us, "to_us": to_us} for from_us, to_us in history.without_members
        ],
        "without_worker": [
            {**each._asdict(), "new_worker": each.new_worker or None} for each in history.work.gaps
        ],
        "alone": None
        if one.alone is None
        else {**one.alone._asdict(), "without_us": list(one.alone.without_us)},
        "unloaded_us": None if history.ended is None else history.ended.time_us,
        "baseline": {
            "slice_us": one.baseline.slice_us,
            "slices": one.baseline.slices,
            "rebalances_per_slice": per_slice,
            "busy": [{"from_us": from_us, "rebalances": count} for from_us, count in one.baseline.busy],
        },
        "patterns": [_pattern(each, known, timed, wording) for each in one.findings],
        "unknown": dict(history.missing),
    }


def _rebalance(one: Rebalance, pattern: str | None, known: bool, timed: bool) -> dict[str, Any]:
    return {
        "number": one.number,
        "begun_us": one.begun_us,
        "ended_us": one.ended_us,
        "lasted_us": one.lasted_us if timed else None,
        "rounds": len(one.rounds),
        "cause": one.cause,
        "culprit": one.culprit or None,
        "unowned_us": one.unowned_us if known else None,
        "pattern": pattern,
    }


def _absence(one: Absence, known: bool) -> dict[str, Any]:
    return {
        "member": one.member or None,
        "from_us": one.from_us,
        "to_us": one.to_us,
        "unowned_us": one.unowned_us if known else None,
        "returned": one.returned,
    }


def _pattern(one: Finding, known: bool, timed: bool, wording: Wording) -> dict[str, Any]:
    pattern, match = one.pattern, one.match
    return {
        "name": pattern.name,
        "title": pattern.title,
        "kind": pattern.kind.name.lower(),
        "sentence": match.sentence,
        "members": list(match.members),
        "rebalances": [each.number for each in one.rebalances],
        "rebalances_of_other_patterns": one.shared,
        "lasted_us": one.lasted_us if timed else None,
        "unowned_us": one.unowned_us if known else None,
        "evidence": [
            {
                "seq": row["seq"],
                "time_us": row["time_us"],
                "event": row["event"],
                "text": wording(row),
                "lines": list(row.get("evidence") or ()),
            }
            for row in quoted(match.evidence)
        ],
        "advice": pattern.advice,
        "presets": list(pattern.presets),
        "unknown": match.unknown or None,
    }
