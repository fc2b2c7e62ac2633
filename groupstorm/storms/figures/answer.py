"""One run's figures as one sentence for people."""

from __future__ import annotations

from groupstorm.storms.figures.table import Figures

#: What an invariant's detail says while it holds; anything else is the violation in a sentence.
HELD = "held"


def answer(figures: Figures) -> str:
    """What the run showed, in one sentence; only what its figures say."""
    parts = [_counted(figures.generations, "generation"), _unowned(figures)]
    if figures.nobody_consuming_seconds:
        parts.append(f"for {seconds(figures.nobody_consuming_seconds)} nobody consumed anything")
    if figures.dual_owner_seconds:
        parts.append(f"two members worked on one partition for {seconds(figures.dual_owner_seconds)} in all")
    parts += [part for part in (_moved(figures), _records(figures)) if part]
    broken = [name for name, detail in (figures.invariants or {}).items() if detail != HELD]
    if broken:
        parts.append(f"violated: {', '.join(broken)}")
    return "; ".join(parts) + "."


def seconds(value: float) -> str:
    """A duration for people: three figures that matter, thousands marked."""
    if value == 0:
        return "0 s"
    if value < 0.001:
        return "less than 1 ms"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    return f"{value:,.1f} s" if value < 99.95 else f"{value:,.0f} s"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _unowned(figures: Figures) -> str:
    total, longest = figures.unowned_partition_seconds, figures.unowned_max_seconds
    if total is None or longest is None:
        return "at no time did every partition have an owner"
    if not total:
        return "no partition was ever un-owned"
    return f"partitions were un-owned for {seconds(total)} in all, {seconds(longest)} at the longest"


def _moved(figures: Figures) -> str:
    if figures.moves is None:
        return "the group never settled"
    if not figures.moves:
        return "nothing moved for good"
    moved = f"{_counted(figures.moves, 'partition')} moved"
    if figures.moves_wasted is None:
        return moved
    if figures.moves_wasted == 0:
        return f"{moved}, as few as a balanced group can do with"
    if figures.moves_wasted < 0:
        return f"{moved}, {-figures.moves_wasted:,} fewer than balance would have taken"
    return f"{moved}, {figures.moves_wasted:,} of them needlessly"


def _records(figures: Figures) -> str:
    parts = []
    if figures.records_duplicated:
        parts.append(f"{_counted(figures.records_duplicated, 'record')} processed again")
    if figures.records_skipped:
        parts.append(f"{_counted(figures.records_skipped, 'record')} skipped")
    return " and ".join(parts)
