"""The partitions that moved between settled points, the least that had to move, and the balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from groupstorm.history.gaps import Partition
from groupstorm.history.record_model import RecordModel
from groupstorm.history.settling import Topics


class Moves:
    """Compares the owner maps of consecutive settled points."""

    def __init__(self) -> None:
        self.moves: int | None = None
        self.lower_bound: int | None = None
        self.imbalance_max: int | None = None
        #: In records per 1,000 seconds.
        self.imbalance_rate_max: int | None = None
        self.idle_members_max: int | None = None
        #: The two imbalances and the idle members of the last settled point.
        self._last: tuple[int | None, int | None, int] = None, None, 0
        self._owners: dict[str, str] = {}
        self._loads: Counter[str] = Counter()
        #: Member -> the sum of its partitions' record rates.
        self._rates: Counter[str] = Counter()

    def settled(
        self, live: Mapping[str, Topics | None], touched: Iterable[Partition], model: RecordModel
    ) -> None:
        """A settled point: ``touched`` are the partitions that changed hands since the last one."""
        before = self._loads.copy()
        moves, dropped = self._move(touched, model)
        if self.moves is None:
            self.moves = self.lower_bound = 0
        else:
            self.moves += moves
            if self.lower_bound is not None:
                bound = moves_needed(before, self._loads, live, dropped)
                self.lower_bound = None if bound is None else self.lower_bound + bound
        self._weigh(live)

    def rate_changed(self, partition: str, by: int) -> None:
        """A log grows faster than before, or slower."""
        owner = self._owners.get(partition)
        if owner is not None:
            self._rates[owner] += by

    def begin_window(self) -> None:
        """The last settled point becomes the first."""
        if self.moves is not None:
            self.moves = self.lower_bound = 0
            self.imbalance_max, self.imbalance_rate_max, self.idle_members_max = self._last

    def _move(self, touched: Iterable[Partition], model: RecordModel) -> tuple[int, int]:
        """The partitions that have another owner than before, and those that have none any more."""
        moves = dropped = 0
        owners = self._owners
        for partition in touched:
            before = owners.get(partition.name)
            after = partition.owners[-1].member if partition.owners else None  # of two, the last one
            if before == after:
                continue
            rate = model.log(partition.name).rate
            if before is not None:
                del owners[partition.name]
                self._loads[before] -= 1
                self._rates[before] -= rate
                dropped += after is None
            if after is not None:
                owners[partition.name] = after
                self._loads[after] += 1
                self._rates[after] += rate
                moves += before is not None
        return moves, dropped

    def _weigh(self, live: Mapping[str, Topics | None]) -> None:
        idle = sum(not self._loads[member] for member in live)
        self.idle_members_max = max(idle, self.idle_members_max or 0)
        self._last = None, None, idle
        by_topics: dict[Topics, list[str]] = {}
        for member, topics in live.items():
            if topics is None:
                return
            by_topics.setdefault(topics, []).append(member)
        imbalance, rates = (
            max((_spread([sums[one] for one in members]) for members in by_topics.values()), default=0)
            for sums in (self._loads, self._rates)
        )
        self._last = imbalance, rates, idle
        self.imbalance_max = max(imbalance, self.imbalance_max or 0)
        self.imbalance_rate_max = max(rates, self.imbalance_rate_max or 0)


def _spread(values: Sequence[int]) -> int:
    return max(values) - min(values)


def moves_needed(
    before: Mapping[str, int], after: Mapping[str, int], live: Mapping[str, Topics | None], dropped: int
) -> int | None:
    """The least that any assignment with the balance of ``after`` would have moved.

    ``before``, ``after``: how many partitions each member owned and owns. Any assignment: the same numbers
    of partitions go to whichever of the members that are there, and of the partitions that had an owner
    ``dropped`` have none any more. Members keep the most if the larger number goes to who had more (the sum
    of the lesser ones of two sequences is largest if both are sorted); all others, less the dropped ones,
    move.
    None if the live members' subscriptions differ or are not known.
    """
    subscriptions: Collection[Topics | None] = set(live.values())
    if len(subscriptions) > 1 or None in subscriptions:
        return None
    there = {*live, *(member for member, count in after.items() if count)}
    had = sorted([before.get(member, 0) for member in there])
    have = sorted([after.get(member, 0) for member in there])
    kept = sum([min(one, other) for one, other in zip(had, have, strict=True)])
    return max(0, sum(before.values()) - dropped - kept)
