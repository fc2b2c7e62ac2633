"""Members of one topic by load: which one gets the next partition, and which one gives up the next.

Both sides are ranges of members with equal loads. The lower range starts at the least loaded member and
takes in its neighbours as its level rises to theirs; the upper range starts at the most loaded one and
takes in neighbours as its level sinks. Within a range members take turns, lower members first below, higher
members first above (UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer).
"""

from __future__ import annotations

from collections.abc import Sequence


class Levels:
    """The two ranges. The caller owns ``loads`` (by member) and changes it as partitions move.

    ``members`` are the topic's, at least one, ascending.
    """

    def __init__(self, loads: Sequence[int], members: Sequence[int]) -> None:
        self._loads = loads
        self._members = sorted(members, key=loads.__getitem__)
        self._lower_end = 0
        self._lower_level = loads[self._members[0]] - 1
        self._lower_next = 0
        self._upper_start = self._upper_end = len(self._members)
        self._upper_level = loads[self._members[-1]] + 1
        self._upper_next = len(self._members) - 1

    def is_balanced(self) -> bool:
        """Whether a move from the upper range to the lower would not help."""
        return self._upper_level - self._lower_level <= 1

    def next_receiver(self) -> int:
        """The least loaded member, which then counts as having one partition more."""
        members, loads = self._members, self._loads
        if self._lower_next >= self._lower_end:
            self._lower_level += 1
            while self._lower_end < len(members) and loads[members[self._lower_end]] == self._lower_level:
                self._lower_end += 1
            self._lower_next = 0
        self._lower_next += 1
        return members[self._lower_next - 1]

    def next_giver(self) -> int | None:
        """The most loaded member, which then counts as having one partition less; None if there is none."""
        if self._upper_next < self._upper_start:
            self._sink()
        if self._upper_next < 0:
            return None
        self._upper_next -= 1
        return self._members[self._upper_next + 1]

    def _sink(self) -> None:
        """After a turn of the upper range: go one level down, and take in the members there."""
        members, loads = self._members, self._loads
        if self._upper_end <= self._upper_start and self._upper_start > 0:
            # all members are excluded: go down to the level of the next member
            self._upper_level = loads[members[self._upper_start - 1]]
        else:
            self._upper_level -= 1
        while self._upper_start > 0 and loads[members[self._upper_start - 1]] == self._upper_level:
            self._upper_start -= 1
        self._upper_next = self._upper_end - 1

    def exclude_giver(self) -> None:
        """Remove the last giver, which has no partition of this topic left, from the upper range."""
        members, place, end = self._members, self._upper_next + 1, self._upper_end - 1
        members[place], members[end] = members[end], members[place]
        self._upper_end = end
