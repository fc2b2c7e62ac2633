"""Variants that cannot be the best one, whatever their figures: their groups did not do what was wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.figures.table import Figures
from groupstorm.figures.unsettled import HELD, SETTLED_LATE, SETTLES, lag_growth, overload_sentence
from groupstorm.history.migration import REFUSED
from groupstorm.verdicts.ranking import Runs
from groupstorm.wording import listed

#: Begins the sentence on such a variant.
UNFIT: Final = "Not ranked is"

FATAL: Final[Mapping[str, str]] = {
    "INCONSISTENT_GROUP_PROTOCOL": "they offer no assignor that all others offer",
    "FENCED_INSTANCE_ID": "another process has their group.instance.id",
    "GROUP_MAX_SIZE_REACHED": "the group is full, see group.max.size",
    "INVALID_SESSION_TIMEOUT": "the broker does not allow their session.timeout.ms",
    "GROUP_AUTHORIZATION_FAILED": "they may not read the group",
}
"""Errors that end a consumer, and the reason for people."""


def unfit_variants(variants: Runs) -> dict[str, str]:
    """Variant -> why it is not ranked: consumers died of errors, or the group cannot settle or keep up.

    Each kind of reason as it was in the first run that had it.
    """
    found: dict[str, str] = {}
    for name, runs in variants.items():
        reasons = {kind: reason for figures in reversed(runs) for kind, reason in _reasons(figures).items()}
        if reasons:
            found[name] = "; ".join(reasons.values())
    return found


def _reasons(figures: Figures) -> dict[str, str]:
    reasons = {}
    dead = [error for error in FATAL if (figures.errors or {}).get(error)]
    if dead:
        why = listed([f"{error} ({FATAL[error]})" for error in dead])
        reasons[why] = f"consumers ended with {why}"
    refused = (figures.errors or {}).get(REFUSED, 0)
    if refused and (figures.requests or {}).get("ConsumerGroupHeartbeat"):
        reasons["refused"] = f"the group could not change its protocol ({REFUSED})"
    verdict = (figures.invariants or {}).get(SETTLES, HELD)
    if verdict != HELD and not verdict.startswith(SETTLED_LATE):
        reasons["restless"] = f"the group did not come to rest ({verdict})"
    elif (growth := lag_growth(figures)) is not None:
        reasons["overload"] = f"the group cannot keep up ({overload_sentence(growth)})"
    return reasons
