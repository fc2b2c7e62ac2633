"""What moved between settled points, how little could have moved, and how even the result was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from groupstorm.storms.figures.ownership import Partition
from groupstorm.storms.figures.settling import Topics


class Moves:
    """Compares the owner maps of consecutive settled points."""

    def __init__(self) -> None:
        self.moves: int | None = None
        self.lower_bound: int | None = None
        self.imbalance_max: int | None = None
        self.idle_members_max: int | None = None
        self._owners: dict[str, str] = {}
        self._loads: Counter[str] = Counter()

    def settled(
        self, live: Mapping[str, Topics | None], touched: Iterable[Partition], partitions: int
    ) -> None:
        """A settled point: ``touched`` are the partitions that changed hands since the last one."""
        if self.moves is None:
            self.moves = 0
            self.lower_bound = 0
            self._move(touched)
        else:
            if self.lower_bound is not None:
                bound = moves_needed(self._loads, live, partitions)
                self.lower_bound = None if bound is None else self.lower_bound + bound
            self.moves += self._move(touched)
        self._weigh(live)

    def _move(self, touched: Iterable[Partition]) -> int:
        moves = 0
        for partition in touched:
            before, after = self._owners.pop(partition.name, None), partition.owner
            if before is not None:
                self._loads[before] -= 1
            if after is not None:
                self._owners[partition.name] = after
                self._loads[after] += 1
            moves += before is not None and after is not None and before != after
        return moves

    def _weigh(self, live: Mapping[str, Topics | None]) -> None:
        idle = sum(not self._loads[member] for member in live)
        self.idle_members_max = max(idle, self.idle_members_max or 0)
        by_topics: dict[Topics, list[int]] = {}
        for member, topics in live.items():
            if topics is None:
                return
            by_topics.setdefault(topics, []).append(self._loads[member])
        imbalance = max((max(loads) - min(loads) for loads in by_topics.values()), default=0)
        self.imbalance_max = max(imbalance, self.imbalance_max or 0)


def moves_needed(loads: Mapping[str, int], live: Mapping[str, Topics | None], partitions: int) -> int | None:
    """The least that a balanced assignment of ``partitions`` to ``live`` members moves.

    ``loads``: how many each member owned before. Balanced: everybody has P div N, and P mod N members
    one more; so a live member keeps at most P div N, and P mod N of those with more keep one more.
    None if the members' subscriptions differ or are not known; 0 without a member to move to.
    """
    if not live:
        return 0
    subscriptions: Collection[Topics | None] = set(live.values())
    if len(subscriptions) > 1 or None in subscriptions:
        return None
    least, rest = divmod(partitions, len(live))
    kept = sum(min(loads.get(member, 0), least) for member in live)
    kept += min(sum(loads.get(member, 0) > least for member in live), rest)
    return sum(loads.values()) - kept
