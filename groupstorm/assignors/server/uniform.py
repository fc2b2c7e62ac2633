"""The two algorithms of `uniform`.

Equal subscriptions (UniformHomogeneousAssignmentBuilder):

* Of P partitions and N members each member gets P // N, and P % N members get one more.
* Members are walked in order. Each keeps its partitions up to its quota, which includes one more as long as
  some of those are left; the others become unassigned.
* A member that ends below a quota with one more leaves that one to others, unless only as many members are
  left as have to take one (KAFKA-18688). So owners of one more keep it, and on an empty start the last
  members get them.
* Unassigned partitions, first those without a previous owner, fill up the members in the same order.

Unequal subscriptions (UniformHeterogeneousAssignmentBuilder, KAFKA-17710):

* Members keep their partitions of topics to which they still subscribe.
* Unassigned partitions are handed out topic by topic, each to the topic's least loaded member. Topics with
  many partitions per subscriber come first, then those of few subscribers, then by id.
* Then, topic by topic and round after round, the topic's most loaded members give partitions, the highest
  first, to its least loaded ones, until their loads differ by no more than one. It ends after a round
  without a move, or after 16 rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused, uuid_order
from groupstorm.assignors.server.group import Drafts, ServerGroup, Target
from groupstorm.turns import Turns

Partition = tuple[UUID, int]

_ROUNDS_MAX = 16
_NOBODY = -1


def assign_homogeneous(group: ServerGroup) -> Turns[list[Target]]:
    """New targets; `AssignmentRefused` if a target holds a nonexistent partition or two hold the same."""
    if not group.subscribed[0]:
        return group.emptied()
    building = _Homogeneous(group)
    yield len(group.subscribed[0])
    return (yield from building.build())


class _Homogeneous:
    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        self._subscribed = group.subscribed[0]
        self._drafts = Drafts(group)
        self._unassigned = self._never_assigned()
        #: Members below their quota, and how many partitions each still gets.
        self._unfilled: list[tuple[int, int]] = []

    def _never_assigned(self) -> list[Partition]:
        assigned: dict[UUID, set[int]] = {}
        for spec in self._group.specs:
            for topic, partitions in spec.target.items():
                if topic in assigned:
                    assigned[topic].update(partitions)
                else:
                    assigned[topic] = set(partitions)
        nothing: set[int] = set()
        return [
            (topic, partition)
            for topic in self._group.subscribed_as_set(0)
            for known in (assigned.get(topic, nothing),)
            for partition in range(self._group.partitions[topic])
            if partition not in known
        ]

    def build(self) -> Turns[list[Target]]:
        members = len(self._group.ids)
        total = sum(self._group.partitions[topic] for topic in self._subscribed)
        floor, extras = divmod(total, members)
        for member in range(members):
            with_extra = extras > 0
            quota = self._keep(member, floor + with_extra)
            if quota > 0 and with_extra and members - member > extras:
                with_extra = False
                quota -= 1
            if quota > 0:
                self._unfilled.append((member, quota))
            extras -= with_extra
            yield 1 + len(self._group.specs[member].target)
        yield from self._fill()
        return (yield from self._drafts.targets())

    def _keep(self, member: int, quota: int) -> int:
        """Take from a member the partitions beyond its quota; returns the rest of its quota."""
        target = self._group.specs[member].target
        mine = sum(len(partitions) for topic, partitions in target.items() if topic in self._subscribed)
        if mine > quota:
            self._unassigned.extend(self._surplus(member, quota))
        for topic in target:
            if topic not in self._subscribed:
                self._drafts[member].remove_topic(topic)
        return max(quota - mine, 0)

    def _surplus(self, member: int, quota: int) -> Iterator[Partition]:
        """Remove a member's partitions beyond its quota, in the order of its tables."""
        for topic, partitions in self._group.target(member).items():
            if topic in self._subscribed:
                for partition in partitions[quota:]:
                    self._drafts[member].remove(topic, partition)
                    yield topic, partition
                quota = max(quota - len(partitions), 0)

    def _fill(self) -> Turns[None]:
        rest = iter(self._unassigned)
        for member, quota in self._unfilled:
            for topic, partition in islice(rest, quota):
                self._drafts[member].add(topic, partition)
                yield 1
        if next(rest, None) is not None:
            raise AssignmentRefused("PartitionAssignorException", "Partitions were left unassigned")


def assign_heterogeneous(group: ServerGroup) -> Turns[list[Target]]:
    """New targets; `AssignmentRefused` if a member has a nonexistent partition of its topics."""
    if not any(group.subscribed):
        return group.emptied()
    building = _Heterogeneous(group)
    yield sum(map(len, group.subscribed))
    return (yield from building.build())


class _Heterogeneous:
    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        self._drafts = Drafts(group)
        #: The number of partitions of each member.
        self._loads = [0] * len(group.ids)
        self._subscribers: dict[UUID, list[int]] = {}
        for member, topics in enumerate(group.subscribed):
            for topic in topics:
                self._subscribers.setdefault(topic, []).append(member)
        #: The member that has each partition of a topic.
        self._owners = {topic: [_NOBODY] * group.partitions[topic] for topic in self._subscribers}
        self._topics = sorted(self._subscribers, key=self._rank)

    def _rank(self, topic: UUID) -> tuple[float, int, int]:
        partitions, subscribers = self._group.partitions[topic], len(self._subscribers[topic])
        return -(partitions / subscribers), subscribers, uuid_order(topic)

    def build(self) -> Turns[list[Target]]:
        for member in range(len(self._group.ids)):
            self._keep(member)
            yield 1 + len(self._group.specs[member].target)
        for topic in self._topics:
            self._hand_out(topic)
            yield self._group.partitions[topic]
        yield from self._balance([topic for topic in self._topics if len(self._subscribers[topic]) > 1])
        return (yield from self._drafts.targets())

    def _keep(self, member: int) -> None:
        subscribed = self._group.subscribed[member]
        for topic, partitions in self._group.specs[member].target.items():
            if topic not in subscribed:
                self._drafts[member].remove_topic(topic)
                continue
            owners = self._owners[topic]
            if partitions and not (min(partitions) >= 0 and max(partitions) < len(owners)):
                raise self._no_such_partition(member)
            self._loads[member] += len(partitions)
            for partition in partitions:
                owners[partition] = member

    def _no_such_partition(self, member: int) -> AssignmentRefused:
        """Java's message for the first such partition in the member's tables."""
        for topic, partitions in self._group.target(member).items():
            known = self._group.partitions.get(topic, 0)
            for partition in partitions:
                if topic in self._group.subscribed[member] and not 0 <= partition < known:
                    said = f"Index {partition} out of bounds for length {known}"
                    return AssignmentRefused("ArrayIndexOutOfBoundsException", said)
        raise AssertionError("the member has no partition that does not exist")

    def _hand_out(self, topic: UUID) -> None:
        free = [partition for partition, owner in enumerate(self._owners[topic]) if owner == _NOBODY]
        if free:
            levels = _Levels(self._loads, self._subscribers[topic])
            for partition in free:
                self._give(topic, partition, levels.next_receiver())

    def _give(self, topic: UUID, partition: int, member: int) -> None:
        owner = self._owners[topic][partition]
        if owner != _NOBODY:
            self._drafts[owner].remove(topic, partition)
            self._loads[owner] -= 1
        subscribers = len(self._subscribers[topic])
        share = (self._group.partitions[topic] + subscribers - 1) // subscribers
        self._drafts[member].add(topic, partition, room=int(share / 0.75 + 1))
        self._owners[topic][partition] = member
        self._loads[member] += 1

    def _balance(self, topics: list[UUID]) -> Turns[None]:
        moved_last: UUID | None = None
        for _ in range(_ROUNDS_MAX):
            for topic in topics:
                if topic == moved_last:
                    return
                if self._balance_topic(topic) or moved_last is None:
                    moved_last = topic
                yield self._group.partitions[topic]

    def _balance_topic(self, topic: UUID) -> bool:
        """Returns whether a partition moved."""
        loads = [self._loads[member] for member in self._subscribers[topic]]
        if max(loads) - min(loads) <= 1:
            return False
        levels = _Levels(self._loads, self._subscribers[topic])
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(partition)
        moved = False
        while not levels.is_balanced():
            giver = _next_giver(levels, owned)
            if giver is None:
                break
            partition = owned[giver].pop()
            receiver = levels.next_receiver()
            if levels.is_balanced():
                break
            self._give(topic, partition, receiver)
            moved = True
        return moved


def _next_giver(levels: _Levels, owned: dict[int, list[int]]) -> int | None:
    """The most loaded member that still has partitions of this topic to give."""
    while (giver := levels.next_giver()) is not None and not owned.get(giver):
        levels.exclude_giver()
    return giver


class _Levels:
    """Members of one topic by load: which one gets the next partition, and which one gives up the next.

    Both sides are ranges of members with equal loads. The lower range starts at the least loaded member and
    takes in its neighbours as its level rises to theirs; the upper range starts at the most loaded one and
    takes in neighbours as its level sinks. Within a range members take turns, lower members first below,
    higher members first above (UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer).

    The caller owns ``loads`` (by member) and changes it as partitions move. ``members`` are the topic's, at
    least one, ascending.
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
