"""`simple`, the assignor of share groups (KIP-932): a partition may have several members, and nobody waits.

With P partitions that may be assigned and M members, each partition shall have ceil(M / P) members, and the
members shall have equal numbers of partitions. Old targets are cut to that, then filled up in turn. If the
members subscribe to different topics, each topic is dealt by itself.

Kafka: SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil
from uuid import UUID

from groupstorm.assignors.contract import AssignmentRefused
from groupstorm.assignors.server.group import Drafts, ServerGroup, Target
from groupstorm.javahash import JavaHashMap, hash_order, integer_hash, uuid_hash
from groupstorm.turns import Turns

#: A topic's partition, as an assignor refers to it.
Partition = tuple[UUID, int]


def assign_simple(group: ServerGroup, assignable: Mapping[UUID, Collection[int]]) -> Turns[list[Target]]:
    """New targets of the partitions that are ``assignable``; `AssignmentRefused` if Kafka's assignor throws.

    A topic of which a member has lost all partitions stays in its target, without any.
    """
    targets = []
    for member in range(len(group.ids)):
        targets.append(group.target(member))
        yield 1 + len(targets[-1])
    if group.is_homogeneous:
        return (yield from _assign_together(group, targets, assignable))
    topics = hash_order(
        [topic for member in range(len(targets)) for topic in group.subscribed_in_order(member)], uuid_hash
    )
    if not topics:
        return group.emptied()
    drafts = Drafts(group)
    for topic in topics:
        members = [member for member, subscribed in enumerate(group.subscribed) if topic in subscribed]
        deal = _Deal(drafts, members, list(_assignable(group, assignable, topic)), _numbered)
        for member, target in enumerate(targets):
            deal.count(member, [(topic, number) for number in target.get(topic, ())])
        yield from deal.complete()
    return (yield from drafts.targets())


def _assign_together(
    group: ServerGroup, targets: list[dict[UUID, list[int]]], assignable: Mapping[UUID, Collection[int]]
) -> Turns[list[Target]]:
    """All members subscribe to the same topics: their partitions are dealt at once."""
    if not group.specs[0].topics:
        return group.emptied()
    drafts, topics = Drafts(group), group.subscribed_in_order(0)
    partitions = [one for topic in topics for one in _assignable(group, assignable, topic)]
    yield len(topics) + len(partitions)
    deal = _Deal(drafts, range(len(targets)), partitions, _partition_hash)
    for member, target in enumerate(targets):
        for topic, numbers in target.items():
            if topic in group.subscribed[0]:
                deal.count(member, [(topic, number) for number in numbers])
            else:
                drafts[member].remove_topic(topic)
        yield len(target)
    yield from deal.complete()
    return (yield from drafts.targets())


def _assignable(
    group: ServerGroup, assignable: Mapping[UUID, Collection[int]], topic: UUID
) -> Iterator[Partition]:
    known = assignable.get(topic, ())
    return ((topic, number) for number in range(group.partitions[topic]) if number in known)


def _partition_hash(partition: Partition) -> int:
    """``TopicIdPartition.hashCode``."""
    topic, number = partition
    return 31 * uuid_hash(topic) + number


def _numbered(partition: Partition) -> int:
    """The hash of a partition in a table of one topic."""
    return integer_hash(partition[1])


class _Deal:
    """Partitions dealt to members, which are numbers here, in ascending order."""

    def __init__(
        self,
        drafts: Drafts,
        members: Sequence[int],
        partitions: list[Partition],
        hash_of: Callable[[Partition], int],
    ) -> None:
        self._drafts = drafts
        self._members = members
        self._partitions = partitions
        self._hash_of = hash_of
        self._sharing = -(-len(members) // len(partitions)) if partitions else 0
        share = self._sharing * len(partitions) / len(members)
        #: The number of partitions that each member shall have; nobody else shall have any.
        self._quotas = {
            member: ceil(share * (place + 1)) - ceil(share * place) for place, member in enumerate(members)
        }
        #: The members of each partition, and the partitions of each member, in the order of Java's sets.
        self._holders: JavaHashMap[Partition, JavaHashMap[int, None]] = JavaHashMap(
            hash_of, initial_capacity=int((len(partitions) + 1) / 0.75 + 1)
        )
        self._held: dict[int, JavaHashMap[Partition, None]] = {}

    def count(self, member: int, partitions: Iterable[Partition]) -> None:
        """The member's last target holds these partitions."""
        for partition in partitions:
            self._holders_of(partition).put(member, None)
            self._held_by(member).put(partition, None)

    def _holders_of(self, partition: Partition) -> JavaHashMap[int, None]:
        return self._holders.compute_if_absent(partition, lambda: JavaHashMap(integer_hash))

    def _held_by(self, member: int) -> JavaHashMap[Partition, None]:
        return self._held.setdefault(member, JavaHashMap(self._hash_of))

    def complete(self) -> Turns[None]:
        """Take away what is too much, then hand out what is missing."""
        for member, held in self._held.items():
            for partition in held.keys()[: max(len(held) - self._quotas.get(member, 0), 0)]:
                self._take(member, partition)
        for partition, holders in self._holders.items():
            for member in holders.keys()[: max(len(holders) - self._sharing, 0)]:
                self._take(member, partition)
        yield len(self._holders)
        for partition in self._partitions:
            self._holders_of(partition)
        yield len(self._partitions)
        yield from self._fill()

    def _take(self, member: int, partition: Partition) -> None:
        self._drafts[member].remove(*partition, keeps_topic=True)
        self._held[member].remove(partition)
        self._holders[partition].remove(member)

    def _fill(self) -> Turns[None]:
        """Members that have too few partitions take turns. As in Kafka a member may be handed a partition
        twice, and once a round has handed out nothing, no partition is handed out any more."""
        unfilled = [one for one in self._members if len(self._held.get(one, ())) < self._quotas[one]]
        turn, handed_out = 0, False
        for partition, holders in self._holders.items():
            missing = self._sharing - len(holders)
            while missing > 0:
                if turn == len(unfilled):
                    if not handed_out:
                        break
                    turn, handed_out = 0, False
                    if not unfilled:
                        raise AssignmentRefused("NoSuchElementException", "nobody has room for a partition")
                member = unfilled[turn]
                turn += 1
                if member in holders:
                    continue
                self._drafts[member].add(*partition)
                self._held_by(member).put(partition, None)
                missing, handed_out = missing - 1, True
                if len(self._held[member]) >= self._quotas[member]:
                    turn -= 1
                    del unfilled[turn]
            if not unfilled:
                return
            yield 1
