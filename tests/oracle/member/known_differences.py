"""The situations in which our member differs from Kafka's Java consumer, and the Java class that causes it.

A row without a difference fails: remove the row of a fixed difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

EVERY = "*"


class Known(NamedTuple):
    """``what`` as in `comparison.Difference`, or ``end``: ours does not end, or ends too early.

    ``every`` situation or variant: the difference is met in some of them, not necessarily in all.
    ``always``: False if Kafka's own consumer sometimes does one and sometimes the other.
    """

    situation: str
    variant: str
    what: str
    cause: str
    always: bool = True

    def covers(self, situation: str, variant: str, what: str) -> bool:
        return self.situation in (EVERY, situation) and self.variant in (EVERY, variant) and self.what == what


_RACE = (
    "AbstractCoordinator.joinGroupIfNeeded takes the generation before onJoinPrepare waits for the commit:"
    " an answer that comes at once is not seen, and what is lost is called revoked"
)
_LATE = (
    "ConsumerCoordinator.onJoinPrepare goes on where the commit's answer comes at once: the round ends"
    " before the next poll() throws"
)

KNOWN: tuple[Known, ...] = (
    *(
        Known("commit before a rejoin refused", variant, "observed", _RACE, always=False)
        for variant in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
    ),
    *(
        Known("static member is fenced", "by OffsetCommit before a rejoin", what, _LATE, always=False)
        for what in ("requests", "observed")
    ),
)


def unexpected(situation: str, variant: str, found: Iterable[str]) -> list[str]:
    """Sentences about differences that are not known, and about known ones that are not there any more."""
    differs = set(found)
    rows = [row for row in KNOWN if row.situation == situation and row.variant == variant]
    sentences = [
        f"{what} differs, which is not known"
        for what in sorted(differs)
        if not any(row.covers(situation, variant, what) for row in KNOWN)
    ]
    sentences += [
        f"{row.what} differs no more: its row can go"
        for row in rows
        if row.always and row.what not in differs
    ]
    return sentences
