"""Variants that cannot be the best one, whatever their figures: their groups did not do what was wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.figures.migration import REFUSED
from groupstorm.figures.overload import lag_growth, overload_sentence
from groupstorm.figures.table import Figures
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
    """Variant -> why it is not ranked: consumers died of errors, or the group cannot settle or keep up."""
    found: dict[str, str] = {}
    for name, runs in variants.items():
        reasons = [reason for figures in runs for reason in _reasons(figures)]
        if reasons:
            found[name] = "; ".join(dict.fromkeys(reasons))
    return found


def _reasons(figures: Figures) -> list[str]:
    dead = [error for error in FATAL if (figures.errors or {}).get(error)]
    reasons = []
    if dead:
        why = listed([f"{error} ({FATAL[error]})" for error in dead])
        reasons.append(f"consumers ended with {why}")
    refused = (figures.errors or {}).get(REFUSED, 0)
    if refused and (figures.requests or {}).get("ConsumerGroupHeartbeat"):
        reasons.append(f"the group could not change its protocol ({REFUSED})")
    verdict = (figures.invariants or {}).get("group_settles", "held")
    if verdict != "held":
        reasons.append(f"the group did not come to rest ({verdict})")
    elif (growth := lag_growth(figures)) is not None:
        reasons.append(f"the group cannot keep up ({overload_sentence(growth)})")
    return reasons
