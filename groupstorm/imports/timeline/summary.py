"""The findings of an import on one group: its part in `import.json`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class GroupSummary:
    """``view``: from whose rows ownership follows. ``rebalances_seen``: those that descriptions of the group
    show. ``epochs``: how often the epoch was bumped, the rounds of a group that has epochs. ``longest_us``:
    until a round's assignment was there. ``missing``: cause -> how often, and the first sentence."""

    name: str
    view: str = "coordinator"
    rounds_known: int = 0
    rounds_unknown: int = 0
    epochs: int = 0
    longest_us: int = 0
    descriptions: int = 0
    is_only_described: bool = True
    rebalances_seen: int = 0
    has_members: bool = False
    missing: dict[str, tuple[int, str]] = field(default_factory=dict)
