"""Verdicts of a run's invariants that say that its configuration keeps the group from coming to rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
