"""Records that are processed again, and partitions that move although nothing asks for it."""

from __future__ import annotations

from typing import Final

from groupstorm.explain.findings import Match
from groupstorm.explain.history import History
from groupstorm.wording import counted

#: This part of all processed records was given up without a commit: the application does not commit then. (A
#: cooperative member with enable.auto.commit leaves some per cent: it processes on after its last commit.)
UNCOMMITTED_MIN: Final = 0.1
#: So many moves that balance did not need, and at least half of all moves: the assignor keeps nothing.
WASTED_MIN: Final = 10


def uncommitted(history: History) -> Match | None:
    """Members gave up partitions in order (onPartitionsRevoked), and a tenth of all records that the group
    processed had no commit then. The next owner processes them again, or, if nothing at all was committed,
    begins as `auto.offset.reset` says. Only of traces with positions: logs have none."""
    found = history.uncommitted
    processed = None if history.figures is None else history.figures.records_processed
    if not processed or found.records < UNCOMMITTED_MIN * processed:
        return None
    sentence = (
        f"{counted(found.records, 'processed record')} had no commit when the members gave up their "
        f"partitions ({found.records / processed:.0%} of all processed records)."
    )
    return Match(sentence, tuple(found.members), (), (), found.rows)


def needless_moves(history: History) -> Match | None:
    """At least half of all moves, and ten, were more than any balanced assignment would have needed
    (`moves_wasted`)."""
    figures = history.figures
    if figures is None or figures.moves is None or figures.moves_wasted is None:
        return None
    if figures.moves_wasted < max(WASTED_MIN, figures.moves / 2):
        return None
    sentence = (
        f"{counted(figures.moves, 'partition')} moved to another member; balance needed "
        f"{figures.moves - figures.moves_wasted:,} of these moves."
    )
    return Match(sentence)
