"""The rows of the last minutes and the state of the groups before them: figures of any span up to now."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from groupstorm.problems import InputError
from groupstorm.watch.feed import WatchedRow
from groupstorm.watch.group import GroupPicture, WatchedGroup
from groupstorm.watch.snapshot import read, write

#: A file may appear so long after the rows behind it.
LATE_US: Final = 600_000_000
#: So many rows are carried forward at once: a step costs as much as the state of all groups.
CARRIED_ROWS: Final = 2_000
#: Members that are counted by name, of each group; the others are counted together.
CULPRITS_MAX: Final = 20
OTHERS: Final = "others"

#: The groups of a trace by name.
Groups = dict[str, WatchedGroup]


@dataclass(slots=True)
class GroupSums:
    """Sums of one group since the trace began, as far as they are known."""

    generations: int = 0
    unowned_us: int | None = None
    begun_by_cause: Counter[str] = field(default_factory=Counter)
    begun_by_member: Counter[str] = field(default_factory=Counter)

    def plus(self, picture: GroupPicture) -> GroupSums:
        """With the figures of a span that begins where these end."""
        by_cause, by_member = Counter(self.begun_by_cause), Counter(self.begun_by_member)
        for (cause, member), count in picture.begun.items():
            by_cause[cause] += count
            is_named = member in by_member or len(by_member) < CULPRITS_MAX
            if member:
                by_member[member if is_named else OTHERS] += count
        unowned_us = self.unowned_us
        seconds = picture.figures.unowned_partition_seconds
        if seconds is not None:
            unowned_us = (unowned_us or 0) + round(seconds * 1_000_000)
        return GroupSums(self.generations + picture.figures.generations, unowned_us, by_cause, by_member)


@dataclass(frozen=True, slots=True)
class Carried:
    """The state behind the rows before ``from_us``. ``groups``: `Groups` as `snapshot` writes them.

    ``next_seq``: of the first row that is not part of it.
    """

    from_us: int = 0
    next_seq: int = 0
    groups: dict[str, Any] = field(default_factory=dict)
    sums: Mapping[str, GroupSums] = field(default_factory=dict)


class Rolling:
    """Takes rows in any order, and folds them by ``seq``.

    ``longest_us``: the longest span of which figures are wanted. ``late_us``, ``carried_rows``: see the
    constants. ``too_late``: rows that came when the rows
    behind them had been carried forward; they count nowhere.
    """

    def __init__(
        self,
        longest_us: int,
        carried: Carried | None = None,
        late_us: int = LATE_US,
        carried_rows: int = CARRIED_ROWS,
    ) -> None:
        self._late_us = late_us
        self._carried_rows = carried_rows
        self.carried = carried or Carried()
        self.too_late = 0
        self._longest_us = longest_us
        self._rows: list[WatchedRow] = []

    @property
    def last_us(self) -> int:
        """The time of the last row."""
        return self._rows[-1].time_us if self._rows else self.carried.from_us

    @property
    def last_seq(self) -> int:
        """The number of the last row; -1 without one."""
        return self._rows[-1].seq if self._rows else self.carried.next_seq - 1

    @property
    def missing(self) -> int:
        """The number of rows that have not come although rows behind them have."""
        if not self._rows:
            return 0
        return self._rows[-1].seq + 1 - self.carried.next_seq - len(self._rows)

    def add(self, rows: Iterable[WatchedRow]) -> None:
        """Take rows. A row that is there already is taken once. Raises InputError if it is another row."""
        there = {one.seq: one for one in self._rows}
        for one in rows:
            if one.seq < self.carried.next_seq:
                self.too_late += 1
            elif there.setdefault(one.seq, one).line != one.line:
                raise InputError(f"two rows have the seq {one.seq}: expected the files of one trace")
        self._rows = [there[seq] for seq in sorted(there)]

    def pictures(self, span_us: int, end_us: int) -> list[GroupPicture]:
        """Each group in the last ``span_us`` before ``end_us``, by name."""
        from_us = max(self.carried.from_us, end_us - span_us)
        groups = self._fold(self._rows, from_us)
        return [groups[name].picture(end_us) for name in sorted(groups)]

    def sums(self, end_us: int) -> dict[str, GroupSums]:
        """Each group since the trace began, by name."""
        pictures = self.pictures(end_us, end_us)
        return {one.group: self.carried.sums.get(one.group, GroupSums()).plus(one) for one in pictures}

    def carry(self) -> bool:
        """Carry the rows forward that no span needs any more; returns whether there were enough of them."""
        from_us = self.last_us - self._longest_us - self._late_us
        count = bisect_left(self._rows, from_us, key=lambda one: one.time_us)
        if count < self._carried_rows:
            return False
        old, self._rows = self._rows[:count], self._rows[count:]
        groups = self._fold(old, self.carried.from_us)
        state = write(Groups, groups)
        sums = {
            name: self.carried.sums.get(name, GroupSums()).plus(one.picture(from_us))
            for name, one in groups.items()
        }
        groups = read(Groups, state)
        for one in groups.values():
            one.forget()
            one.count_from(from_us)
        self.carried = replace(
            self.carried, from_us=from_us, next_seq=old[-1].seq + 1, groups=write(Groups, groups), sums=sums
        )
        return True

    def _fold(self, rows: Sequence[WatchedRow], from_us: int) -> dict[str, WatchedGroup]:
        """The groups with ``rows``, counting from ``from_us`` on."""
        groups: Groups = read(Groups, self.carried.groups)
        now_us = 0
        counting = False
        for one in rows:
            if one.time_us < now_us:
                raise InputError(f"row {one.seq}: time_us: {one.time_us}: expected at least {now_us}")
            now_us = one.time_us
            if not counting and now_us >= from_us:
                counting = self._count(groups, from_us)
            group = groups.get(one.group)
            if group is None:
                group = groups[one.group] = WatchedGroup(one.group, now_us)
                if counting and from_us:
                    group.count_from(from_us)
            group.add(one)
        if not counting:
            self._count(groups, from_us)
        return groups

    @staticmethod
    def _count(groups: Mapping[str, WatchedGroup], from_us: int) -> bool:
        for group in groups.values():
            if from_us:
                group.count_from(from_us)
        return True
