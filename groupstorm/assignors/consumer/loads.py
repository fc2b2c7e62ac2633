"""Members ordered by load, then by id: the sorted set of the general sticky assignment."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence

from groupstorm.assignors.userdata import java_key


class Loads:
    """Some of the members of ``assigned``, ordered by their number of partitions, then by ``names``.

    A caller that changes a member's list removes the member before and adds it again after.
    """

    def __init__(self, names: Sequence[str], assigned: Sequence[list[int]]) -> None:
        self._assigned = assigned
        self._by_id = sorted(range(len(names)), key=lambda member: java_key(names[member]))
        self._place = [0] * len(names)
        for place, member in enumerate(self._by_id):
            self._place[member] = place
        self._keys = sorted(map(self._key, range(len(names))))
        self._inside = [True] * len(names)

    def _key(self, member: int) -> int:
        return len(self._assigned[member]) * len(self._place) + self._place[member]

    def remove(self, member: int) -> None:
        """Remove a member, if it is present."""
        if self._inside[member]:
            del self._keys[bisect_left(self._keys, self._key(member))]
            self._inside[member] = False

    def add(self, member: int) -> None:
        """Insert a member at the place of its load."""
        if not self._inside[member]:
            insort(self._keys, self._key(member))
            self._inside[member] = True

    def least(self, members: Iterable[int]) -> int | None:
        """The first of these members that is present; None if none is."""
        key = min((self._key(member) for member in members if self._inside[member]), default=None)
        return None if key is None else self._by_id[key % len(self._by_id)]

    def sizes(self) -> list[int]:
        """The loads of the members that are present, ascending."""
        return [key // len(self._by_id) for key in self._keys]

    def __contains__(self, member: int) -> bool:
        return self._inside[member]

    def __iter__(self) -> Iterator[int]:
        by_id = self._by_id
        return (by_id[key % len(by_id)] for key in self._keys)

    def __len__(self) -> int:
        return len(self._keys)
