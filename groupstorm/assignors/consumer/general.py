"""The sticky assignment of unequal subscriptions (AbstractStickyAssignor.GeneralAssignmentBuilder).

1. Members keep the owned partitions to which they still subscribe (and which are in their rack, if racks
   count).
2. Free partitions go to the subscriber with the lowest load, topics with the fewest subscribers first.
3. Partitions move from the member with more to the subscriber with the lowest load as long as that makes
   the loads more even. A partition that was claimed in an older generation goes back there first.

A move may send another partition back instead (`PartitionMovements`), even one of a third member that gains
nothing by it. In rare groups Kafka's passes then go round in circles for ever. This module detects a circle:
from then on it makes only moves that make the loads more even, or it refuses (``refuses_circles``).

Kafka checks before every step whether the assignment is balanced already, which takes the square of the
group's size. With sound claims the check changes nothing, because a balanced assignment has no move left;
so this module makes it for unsound claims only (``literally``).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count

from groupstorm.assignors.consumer.claims import Claim, SettledOwnership
from groupstorm.assignors.consumer.indexed import PartitionIndex, Question
from groupstorm.assignors.consumer.racks import Racks
from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.userdata.wire import java_keys
from groupstorm.javahash import JavaHashMap, topic_partition_hash

_Pair = tuple[int, int]


class PartitionMovements:
    """Movements as (from, to) pairs of members, per topic and per partition."""

    def __init__(self, index: PartitionIndex, order: MapOrder) -> None:
        self._index = index
        self._order = order
        self._moved: dict[int, _Pair] = {}
        self._by_topic: dict[int, dict[_Pair, JavaHashMap[int, None]]] = {}

    def _java_hash(self, partition: int) -> int:
        return topic_partition_hash(self._index.name(partition))

    def state(self) -> Hashable:
        return frozenset(self._moved.items())

    def better_choice(self, partition: int, source: int, target: int) -> int:
        """The partition to move from ``source`` to ``target`` instead; may be the same one."""
        pairs = self._by_topic.get(self._index.topic_of[partition])
        if pairs is None:
            return partition
        if partition in self._moved:
            source = self._moved[partition][0]
        moved_back = pairs.get((target, source))
        if moved_back is None:
            return partition
        return moved_back.first() if self._order is MapOrder.JAVA_HASH else min(moved_back.keys())

    def record(self, partition: int, source: int, target: int) -> None:
        """Note a move. Moves of one partition add up; a move back home cancels them."""
        earlier = self._forget(partition)
        if earlier is None:
            self._remember(partition, (source, target))
        elif earlier[0] != target:
            self._remember(partition, (earlier[0], target))

    def _remember(self, partition: int, pair: _Pair) -> None:
        self._moved[partition] = pair
        pairs = self._by_topic.setdefault(self._index.topic_of[partition], {})
        if pair not in pairs:
            pairs[pair] = JavaHashMap(self._java_hash)
        pairs[pair].put(partition, None)

    def _forget(self, partition: int) -> _Pair | None:
        pair = self._moved.pop(partition, None)
        if pair is None:
            return None
        topic = self._index.topic_of[partition]
        pairs = self._by_topic[topic]
        moved = pairs[pair]
        moved.remove(partition)
        if not moved:
            del pairs[pair]
            if not pairs:
                del self._by_topic[topic]
        return pair


#: More passes with moves than any known group needs; from then on the passes look for circles.
_MANY_PASSES = 50

#: With fewer subscribers than one in so many members it is faster to go through a topic's subscribers than
#: to go through the members by load until one subscribes to it.
_SPARSE = 8


class _Loads:
    """Members by load, then by id. Remove a member before its list changes, and add it again after."""

    def __init__(self, names: Sequence[str], assigned: Sequence[list[int]]) -> None:
        self._assigned = assigned
        keys = java_keys(names)
        self._by_id = sorted(range(len(names)), key=keys.__getitem__)
        self._place = [0] * len(names)
        for place, member in enumerate(self._by_id):
            self._place[member] = place
        self._keys = sorted(map(self._key, range(len(names))))
        self._inside = [True] * len(names)

    def _key(self, member: int) -> int:
        return len(self._assigned[member]) * len(self._place) + self._place[member]

    def remove(self, member: int) -> None:
        if self._inside[member]:
            del self._keys[bisect_left(self._keys, self._key(member))]
            self._inside[member] = False

    def add(self, member: int) -> None:
        if not self._inside[member]:
            insort(self._keys, self._key(member))
            self._inside[member] = True

    def least(self, members: Iterable[int]) -> int | None:
        key = min((self._key(member) for member in members if self._inside[member]), default=None)
        return None if key is None else self._by_id[key % len(self._by_id)]

    def sizes(self) -> list[int]:
        return [key // len(self._by_id) for key in self._keys]

    def __contains__(self, member: int) -> bool:
        return self._inside[member]

    def __iter__(self) -> Iterator[int]:
        by_id = self._by_id
        return (by_id[key % len(by_id)] for key in self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class GeneralAssignment:
    """One run. `assigned` holds the answer. ``literally``: do as Kafka does, even if it throws."""

    def __init__(
        self,
        question: Question,
        ownership: SettledOwnership,
        racks: Racks | None,
        order: MapOrder,
        *,
        literally: bool,
        refuses_circles: bool,
    ) -> None:
        claims = question.claims
        index = question.index
        self._index = index
        self._visit = question.visit
        self._racks = racks
        self._literally = literally
        self._refuses_circles = refuses_circles
        self._topics = [_numbers(index, claim.topics) for claim in claims]
        self._subscribed = [frozenset(topics) for topics in self._topics]
        self._subscribers: list[list[int]] = [[] for _ in index.topics]
        for member, topics in enumerate(self._topics):
            for topic in topics:
                self._subscribers[topic].append(member)
        #: The topics, the ones with the fewest subscribers first.
        self._sorted_topics = sorted(
            range(len(index.topics)), key=lambda topic: len(self._subscribers[topic])
        )
        self._older = older_claimants(claims, ownership.max_generation)
        self._movements = PartitionMovements(index, order)
        self._revocation_required = False
        self._balanced: bool | None = None  # until a partition moves
        self._in_circles = False
        self._lowest: dict[int, int] = {}  # per topic the lowest load of a subscriber
        self.assigned = [list(owned) for owned in ownership.owned]
        self._owner: dict[int, int] = {}
        kept = self._keep_owned()
        self._left = self._unassigned(kept)
        self._loads = _Loads([claim.member for claim in claims], self.assigned)

    def _keep_owned(self) -> set[int]:
        kept: set[int] = set()
        for member, owned in enumerate(self.assigned):
            self._owner.update(dict.fromkeys(owned, member))
            mine = [partition for partition in owned if self._may_keep(member, partition)]
            if len(mine) < len(owned):
                self._revocation_required = True
                self.assigned[member] = mine
            kept.update(mine)
        return kept

    def _may_keep(self, member: int, partition: int) -> bool:
        if self._index.topic_of[partition] not in self._subscribed[member]:
            return False
        return self._racks is None or not self._racks.mismatch(member, partition)

    def _unassigned(self, kept: set[int]) -> list[int]:
        """Partitions that nobody kept, by topic; a kept nonexistent one hides those behind it from Kafka."""
        left: list[int] = []
        hidden = False
        for topic in self._sorted_topics:
            real = self._index.real(topic)
            for partition in self._index.span(topic):
                if partition not in real:
                    hidden = hidden or partition in kept
                elif hidden or partition not in kept:
                    left.append(partition)
        return left

    def run(self) -> None:
        """Compute the answer; with ``literally``, raise `AssignmentRefused` if Kafka throws."""
        initializing = not any(self.assigned)
        unplaced = self._left
        if self._racks is not None:
            unplaced = [partition for partition in unplaced if not self._assign(partition, self._racks)]
        for partition in unplaced:
            self._assign(partition, None)
        shared = [len(subscribers) > 1 for subscribers in self._subscribers]
        topic_of = self._index.topic_of
        left = [partition for partition in self._left if shared[topic_of[partition]]]
        shared_topics = [topic for topic in self._sorted_topics if shared[topic]]
        every = [partition for topic in shared_topics for partition in self._index.real(topic)]
        for member in range(len(self.assigned)):
            if not self._takes_part(member, shared):
                self._loads.remove(member)
        before = [list(assigned) for assigned in self.assigned]
        score_before = _balance_score(self._loads.sizes())
        if not self._revocation_required:
            self._reassign(left)
        performed = self._reassign(every)
        if not initializing and performed and _balance_score(self._loads.sizes()) >= score_before:
            self.assigned = before

    def _assign(self, partition: int, racks: Racks | None) -> bool:
        member = self._least_loaded(partition, racks)
        if member is None:
            return False
        self._loads.remove(member)
        self.assigned[member].append(partition)
        self._owner[partition] = member
        self._loads.add(member)
        return True

    def _least_loaded(self, partition: int, racks: Racks | None = None) -> int | None:
        """The subscriber with the lowest load, in the partition's rack if ``racks`` are given."""
        topic = self._index.topic_of[partition]
        subscribers = self._subscribers[topic]
        if len(subscribers) * _SPARSE < len(self._loads):
            if racks is None:
                return self._loads.least(subscribers)
            return self._loads.least(
                member for member in subscribers if not racks.mismatch(member, partition)
            )
        for member in self._loads:
            if topic in self._subscribed[member] and not (racks and racks.mismatch(member, partition)):
                return member
        return None

    def _most_possible(self, member: int) -> int:
        """The size of the member's topics; the total, if it lists as many topics as there are."""
        if len(self._topics[member]) == len(self._index.topics):
            return self._index.total
        counts = self._index.counts
        return sum([counts[topic] for topic in self._topics[member]])

    def _takes_part(self, member: int, shared: Sequence[bool]) -> bool:
        """Whether the member could give or take: it lacks partitions, or has one of a shared topic."""
        assigned = self.assigned[member]
        if len(assigned) < self._most_possible(member):
            return True
        return any(shared[self._index.topic_of[partition]] for partition in assigned)

    def _reassign(self, partitions: Sequence[int]) -> bool:
        """Go over the partitions until a pass moves none; returns whether any partition moved."""
        performed = False
        seen: set[Hashable] = set()
        for passes in count():
            if passes > _MANY_PASSES and not self._in_circles:
                self._look_for_circle(seen)
            moved = False
            for partition in partitions:
                if self._literally:
                    if self._balanced is None:
                        self._balanced = self._is_balanced()
                    if self._balanced:
                        break
                elif self._nobody_has_less(partition):
                    continue
                target = self._better_owner(partition)
                if target is not None:
                    self._move(partition, target)
                    moved = True
            if not moved:
                break
            performed = True
        return performed

    def _look_for_circle(self, seen: set[Hashable]) -> None:
        state = tuple(map(tuple, self.assigned)), self._movements.state()
        if state in seen:
            if self._refuses_circles:
                raise AssignmentRefused("NoAnswer", "Kafka's passes over the partitions never come to an end")
            self._in_circles = True
        seen.add(state)

    def _nobody_has_less(self, partition: int) -> bool:
        """Whether no subscriber would have less even with this partition; kept until a partition moves."""
        topic = self._index.topic_of[partition]
        lowest = self._lowest.get(topic)
        if lowest is None:
            least = self._least_loaded(partition)
            assert least is not None  # the owner takes part, as it has a partition of a shared topic
            lowest = self._lowest[topic] = len(self.assigned[least])
        return len(self.assigned[self._owner[partition]]) <= lowest + 1

    def _better_owner(self, partition: int) -> int | None:
        size = self._size(self._owner[partition])
        older = self._older.get(partition)
        if older is not None and size > self._size(older) + 1:
            return older
        if self._literally and not any(
            size > self._size(other) + 1 for other in self._subscribers[self._index.topic_of[partition]]
        ):
            return None
        least = self._least_loaded(partition)
        return None if least is None or size <= self._size(least) + 1 else least

    def _size(self, member: int | None) -> int:
        if member is None or member not in self._loads:
            raise AssignmentRefused(
                "NullPointerException",
                'Cannot invoke "java.util.List.size()" because the return value of '
                '"java.util.Map.get(Object)" is null',
            )
        return len(self.assigned[member])

    def _move(self, partition: int, target: int) -> None:
        instead = self._movements.better_choice(partition, self._owner[partition], target)
        if not self._in_circles or self._size(self._owner[instead]) > self._size(target) + 1:
            partition = instead
        source = self._owner[partition]
        self._loads.remove(source)
        self._loads.remove(target)
        self._movements.record(partition, source, target)
        self.assigned[source].remove(partition)
        self.assigned[target].append(partition)
        self._owner[partition] = target
        self._loads.add(target)
        self._loads.add(source)
        self._balanced = None
        self._lowest.clear()

    def _is_balanced(self) -> bool:
        sizes = self._loads.sizes()
        if not sizes:
            raise AssignmentRefused("NoSuchElementException", None)
        if sizes[0] >= sizes[-1] - 1:
            return True
        holder: dict[int, int] = {}
        for member in self._visit:
            if member in self._loads:
                holder.update(dict.fromkeys(self.assigned[member], member))
        for member in self._loads:
            mine = set(self.assigned[member])
            size = len(self.assigned[member])
            if size == self._most_possible(member):
                continue
            for topic in self._topics[member]:
                for partition in self._index.real(topic):
                    if partition not in mine and size + 1 < self._size(holder.get(partition)):
                        return False
        return True


def _balance_score(sizes: Sequence[int]) -> int:
    """getBalanceScore of ascending sizes: the sum of the differences of all pairs; 0 is perfect."""
    last = len(sizes) - 1
    return sum(size * (2 * place - last) for place, size in enumerate(sizes))


def _numbers(index: PartitionIndex, topics: Sequence[str]) -> list[int]:
    number_of_topic = index.number_of_topic
    return [number for topic in topics if (number := number_of_topic.get(topic)) is not None]


def older_claimants(claims: Sequence[Claim], max_generation: int) -> dict[int, int]:
    """Per partition the member that claims it with the highest generation below the group's highest."""
    newest: dict[int, tuple[int, int]] = {}
    for member, claim in enumerate(claims):
        if claim.generation >= max_generation:
            continue
        for partition in claim.owned:
            if partition not in newest or claim.generation > newest[partition][1]:
                newest[partition] = (member, claim.generation)
    return {partition: member for partition, (member, _) in newest.items()}
