"""The sticky assignment of equal subscriptions (AbstractStickyAssignor.ConstrainedAssignmentBuilder).

With P partitions and N members every member gets floor(P / N), and P mod N members get one more.

1. Members keep their owned partitions, sorted by partition and topic, up to their share. The order in which
   the members are visited decides which of them keep one more than the floor.
2. If racks count, free partitions go round to members in the partition's rack that have room.
3. The other free partitions go round: one partition a turn to each member below the floor, then one each
   to members at the floor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import compress

from groupstorm.assignors.consumer.claims import SettledOwnership
from groupstorm.assignors.consumer.indexed import Question
from groupstorm.assignors.consumer.racks import Racks
from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.userdata.wire import java_keys


class ConstrainedAssignment:
    """One run.

    `assigned` holds the answer. `transferring` names the new owner of every partition that another member has
    to give up, or that two members claimed.
    """

    def __init__(self, question: Question, ownership: SettledOwnership, racks: Racks | None) -> None:
        self._index = index = question.index
        self._names = [claim.member for claim in question.claims]
        self._ownership = ownership
        self._visit = visit = question.visit
        self._racks = racks
        self._floor, self._extras = divmod(index.total, len(visit))
        self._ceiling = self._floor + (self._extras > 0)
        self._over = 0
        self._below: list[int] = []
        self._exact: list[int] = []
        self._revoked: dict[int, int] = {}
        self.assigned: list[list[int]] = [[] for _ in visit]
        self.transferring: dict[int, int] = {}

    def run(self) -> None:
        """Compute the answer; raise `AssignmentRefused` if Kafka throws IllegalStateException."""
        for member in self._visit:
            self._keep(member, self._countable(member))
        left = self._unassigned()
        if self._below or self._exact:
            keys = java_keys(self._names)
            self._below.sort(key=keys.__getitem__)
            self._exact.sort(key=keys.__getitem__)
        if self._racks is not None:
            left = sorted(left, key=self._racks.members_near)
            left = self._go_round_within_racks(left, self._racks)
        self._go_round(left)

    def _countable(self, member: int) -> list[int]:
        owned = self._ownership.owned[member]
        if not owned:
            return owned
        if self._racks is not None:
            elsewhere = {partition for partition in owned if self._racks.mismatch(member, partition)}
            if elsewhere:
                self._revoked.update(dict.fromkeys(elsewhere, member))
                owned = [partition for partition in owned if partition not in elsewhere]
        if self._ownership.disputed:
            owned = [partition for partition in owned if partition not in self._ownership.disputed]
        return self._index.in_kept_order(owned) if len(owned) > 1 else owned

    def _keep(self, member: int, owned: list[int]) -> None:
        if len(owned) < self._floor:
            limit = len(owned)
            self._below.append(member)
        elif len(owned) >= self._ceiling and self._over < self._extras:
            limit = self._ceiling
            self._over += 1
            if self._over == self._extras:
                self._exact.clear()
        else:
            limit = self._floor
            if self._over < self._extras:
                self._exact.append(member)
        self.assigned[member] = owned[:limit]
        for partition in owned[limit:]:
            self._revoked[partition] = member

    def _unassigned(self) -> Sequence[int]:
        """Partitions that nobody kept, in order.

        Kafka compares two sorted lists. A kept partition that does not exist hides all partitions
        behind it.
        """
        if not any(self.assigned) and not self._index.nonexistent:
            return range(self._index.size)
        free = bytearray(b"\1") * self._index.size
        for kept in self.assigned:
            for partition in kept:
                free[partition] = 0
        if self._index.nonexistent:
            nonexistent = self._index.nonexistent.values()
            kept_nonexistent = (partition for partition in nonexistent if not free[partition])
            hidden_from = min(kept_nonexistent, default=self._index.size)
            free[hidden_from:] = b"\1" * (self._index.size - hidden_from)
            for partition in nonexistent:
                free[partition] = 0
        return list(compress(range(self._index.size), free))

    def _give(self, partition: int, member: int) -> int:
        assigned = self.assigned[member]
        assigned.append(partition)
        if self._changes_hands(partition, member):
            self.transferring[partition] = member
        return len(assigned)

    def _changes_hands(self, partition: int, member: int) -> bool:
        return self._revoked.get(partition, member) != member or partition in self._ownership.disputed

    def _go_round_within_racks(self, left: Sequence[int], racks: Racks) -> list[int]:
        """Give to members in the partition's rack; return the partitions without such a member."""
        leftover: list[int] = []
        start = 0
        for partition in left:
            place = racks.next_near(partition, self._below, start)
            if place >= 0:
                member = self._below[place]
                start = self._after_turn(place)
            else:
                place = racks.next_near(partition, self._exact, 0)
                if place < 0:
                    leftover.append(partition)
                    continue
                member = self._exact[place]
                self._fill_exact(place)
            self._give(partition, member)
        return leftover

    def _after_turn(self, place: int) -> int:
        """The place of the next turn, after a member below the floor gets one partition."""
        member = self._below[place]
        count = len(self.assigned[member]) + 1
        if count < self._floor:
            return (place + 1) % len(self._below)
        del self._below[place]
        if count < self._ceiling and self._over < self._extras:
            self._exact.append(member)
        return place % len(self._below) if self._below else 0

    def _fill_exact(self, place: int) -> None:
        if len(self.assigned[self._exact[place]]) + 1 == self._ceiling:
            del self._exact[place]
            self._over += 1
            if self._over == self._extras:
                self._exact.clear()

    def _go_round(self, left: Sequence[int]) -> None:
        used, unfilled = self._fill_to_floor(left)
        exact = deque(self._exact)
        for partition in left[used:]:
            if not exact:
                raise AssignmentRefused("IllegalStateException", "No more unfilled consumers to be assigned.")
            if self._give(partition, exact.popleft()) == self._ceiling:
                self._over += 1
        if unfilled:
            self._refuse_unfilled(unfilled[0])

    def _fill_to_floor(self, left: Sequence[int]) -> tuple[int, list[int]]:
        """Give turn by turn until all members are at the floor.

        Returns how many partitions that took, and the members still below the floor. All turns until the
        next member is at the floor are one step, in which each member gets every n-th partition.
        """
        changing = self._revoked.keys() | self._ownership.disputed
        below = self._below
        at = 0
        while below and at < len(left):
            turns = self._floor - max(len(self.assigned[member]) for member in below)
            end = min(at + turns * len(below), len(left))
            for turn, member in enumerate(below, start=at):
                mine = left[turn : end : len(below)]
                self.assigned[member] += mine
                if changing:
                    self.transferring.update(
                        (partition, member)
                        for partition in changing.intersection(mine)
                        if self._changes_hands(partition, member)
                    )
            at = end
            self._exact += [member for member in below if len(self.assigned[member]) == self._floor]
            below = [member for member in below if len(self.assigned[member]) < self._floor]
        return at, below

    def _refuse_unfilled(self, member: int) -> None:
        text = (
            f"Consumer: [{self._names[member]}] doesn't reach minQuota partitions, "
            "and no more partitions to be assigned"
        )
        if self._over != self._extras:
            text = (
                "We haven't reached the expected number of members with more than the minQuota "
                "partitions, but no more partitions to be assigned"
            )
        raise AssignmentRefused("IllegalStateException", text)
