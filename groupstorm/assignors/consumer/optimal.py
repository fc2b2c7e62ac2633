"""optimal-sticky: the best balance, then the fewest moves, for any subscriptions.

Best balance: the sorted loads, the highest first, are as small as possible; the same assignments have the
smallest sum of squares (Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs and load
balancing). Fewest moves: of these, an assignment that leaves the most partitions with their owners. Racks
play no part.

1. Topics with the same subscribers are one class of partitions (`network`). If a member owned o partitions
   of a class and gets y of it, min(o, y) of them can stay, and it does not matter which, because nobody
   else owned them. So the counts per member and class decide both aims.
2. `find_bands` finds the common structure of all best-balanced assignments, and `minimize_moves` in each band
   an assignment with the fewest moves.
3. Members keep their own partitions by (partition, topic), so that they keep some of every topic
   (KAFKA-16277); the others are dealt round.

All steps go through members and topics sorted by name, so the answer does not depend on their order. After
the cooperative form has withheld partitions, the next round completes the same plan: every owned partition
can stay then, so two rounds are always enough.

Bands. Let x be the loads of an assignment and q a number. Let R be the members to which a partition can be
shifted, step by step, from some member with more than q. If no member of R has fewer than q, then R holds
only classes that R alone can have: a class that a member of R holds can go to all of its subscribers, so
they are in R as well. Hence

* every assignment gives R at least the number of partitions that x gives it, T;
* a best-balanced one gives it exactly T. Sorted loads are the same in all best-balanced assignments
  (the sum of squares is strictly convex over them), so the sum of max(load - q, 0) is. In x, whose
  members are at q or above inside R and at q or below outside, it is T - q |R|; an assignment that
  gives R more than T has more.

So in all best-balanced assignments the classes held in R stay in R, and the others stay outside; the two
sides are separate problems. Splitting at the average load ends in *bands*: sets of members with loads that
differ by one at most, and the classes that they share. Any assignment of a band's classes within the band
with those two loads is best-balanced, and there are no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from groupstorm.assignors.consumer.indexed import Question
from groupstorm.assignors.consumer.network import ClassNetwork, WaterFilling, bits
from groupstorm.assignors.consumer.planned import PlannedAssignor
from groupstorm.assignors.contract import COOPERATIVE, RebalanceProtocol


class OptimalStickyAssignor(PlannedAssignor):
    """The eager form. The options make no difference, because no hash table breaks a tie."""

    name: ClassVar[str] = "optimal-sticky"

    def plan(self, question: Question, owned: Sequence[Sequence[int]]) -> list[list[int]]:
        return _Optimum(question, owned).plan()


@dataclass(frozen=True)
class OptimalCooperativeStickyAssignor(OptimalStickyAssignor):
    """Assigns by the same plan in a cooperative group: partitions that move come in the second round."""

    protocol: RebalanceProtocol = COOPERATIVE

    name: ClassVar[str] = "optimal-sticky/cooperative"


class _Optimum:
    """One run. Members are numbered by id here: ``self._member`` maps back to the question's numbers."""

    def __init__(self, question: Question, owned: Sequence[Sequence[int]]) -> None:
        self._index = index = question.index
        self._member = question.by_id()
        self._class_of = [0] * len(index.topics)
        takers: list[int] = []
        number_of: dict[int, int] = {}
        for topic, subscribers in enumerate(self._subscribers(question)):
            number = number_of.setdefault(subscribers, len(number_of))
            self._class_of[topic] = number
            if number == len(takers):
                takers.append(subscribers)
        self._counts = [0] * len(takers)
        for topic, number in enumerate(self._class_of):
            self._counts[number] += index.counts[topic]
        self._own = [self._own_by_class(owned, rank, takers) for rank in range(len(self._member))]
        counts = [{number: len(mine) for number, mine in own.items()} for own in self._own]
        # and an empty class, the padding of `minimize_moves`
        self._network = ClassNetwork([*takers, 0], counts)

    def _subscribers(self, question: Question) -> list[int]:
        """Per topic the set of its subscribers; each distinct list of topics is read once."""
        together: dict[tuple[str, ...], int] = {}
        for rank, member in enumerate(self._member):
            topics = question.claims[member].topics
            together[topics] = together.get(topics, 0) | 1 << rank
        number_of = question.index.number_of_topic
        subscribers = [0] * len(number_of)
        for topics, members in together.items():
            for topic in topics:
                number = number_of.get(topic)
                if number is not None:
                    subscribers[number] |= members
        return subscribers

    def _own_by_class(
        self, owned: Sequence[Sequence[int]], rank: int, takers: Sequence[int]
    ) -> dict[int, list[int]]:
        """A member's owned partitions of topics to which it still subscribes, by class."""
        own: dict[int, list[int]] = {}
        for partition in sorted(owned[self._member[rank]], key=self._index.kept_key):
            number = self._class_of[self._index.topic_of[partition]]
            if takers[number] >> rank & 1:
                own.setdefault(number, []).append(partition)
        return own

    def plan(self) -> list[list[int]]:
        network, counts = self._network, self._counts
        padding = len(counts)
        members = 0
        for takers in network.takers:
            members |= takers
        own, network.owned = network.owned, [{} for _ in network.owned]
        filling = WaterFilling(network, members)
        for number in sorted(range(len(counts)), key=lambda number: network.takers[number].bit_count()):
            filling.give(number, counts[number])
        bands = find_bands(network, range(len(counts)), members)
        network.owned = own
        for band in bands:
            if any(own[member] for member in bits(band.members)):
                minimize_moves(network, band, counts, padding)
        return self._partitions()

    def _partitions(self) -> list[list[int]]:
        """Choose the partitions, after the counts per class are known."""
        assigned: list[list[int]] = [[] for _ in self._member]
        wanting: list[list[tuple[int, int]]] = [[] for _ in self._counts]
        for rank, held in enumerate(self._network.held):
            mine = assigned[self._member[rank]]
            for number in sorted(held):
                own = self._own[rank].get(number, [])[: held[number]]
                mine.extend(own)
                if held[number] > len(own):
                    wanting[number].append((self._member[rank], held[number] - len(own)))
        free: list[list[int]] = [[] for _ in self._counts]
        for partition in self._index.left(assigned):
            free[self._class_of[self._index.topic_of[partition]]].append(partition)
        for number, takers in enumerate(wanting):
            _deal(free[number], takers, assigned)
        return assigned


def _deal(free: Sequence[int], takers: list[tuple[int, int]], assigned: list[list[int]]) -> None:
    partitions = iter(free)
    while takers:
        for member, _ in takers:
            assigned[member].append(next(partitions))
        takers = [(member, more - 1) for member, more in takers if more > 1]


class Band(NamedTuple):
    """``members`` as a set of bits, the ``classes`` that only they hold, and the highest load."""

    members: int
    classes: list[int]
    highest: int


def find_bands(network: ClassNetwork, classes: Sequence[int], members: int) -> list[Band]:
    """Split the members into bands, and make the network's complete assignment a best-balanced one."""
    bands: list[Band] = []
    problems = [(members, list(classes))]
    while problems:
        inside, held = problems.pop()
        if not inside:
            continue
        loads = [network.load(member) for member in bits(inside)]
        if max(loads) - min(loads) <= 1:
            bands.append(Band(inside, held, max(loads)))
            continue
        average = sum(loads) // len(loads)
        upper = _members_above(network, inside, held, average)
        if upper == inside:
            # Nobody is below the average: split off the members that stay above the next number.
            upper = _members_above(network, inside, held, average + 1)
        in_upper = {number for member in bits(upper) for number in network.held[member]}
        problems.append((inside & ~upper, [number for number in held if number not in in_upper]))
        problems.append((upper, [number for number in held if number in in_upper]))
    return bands


def _members_above(network: ClassNetwork, members: int, classes: Sequence[int], load: int) -> int:
    """Shift from above ``load`` to below it; returns the members that the remaining surplus can reach."""
    network.set_up(members, ((number, 0) for number in classes), load)
    return network.send_along_free_paths(members, classes)


def minimize_moves(network: ClassNetwork, band: Band, counts: list[int], padding: int) -> None:
    """Assign the band's classes anew, with the best balance and the fewest moves.

    ``counts``: partitions per class. Every member is filled up to the band's highest load; a member whose
    load is to be one lower holds one partition of the class ``padding``, which costs nothing anywhere. The
    search starts with all partitions at their owners: no assignment of that many partitions is cheaper.
    Shortest paths then bring the members to the band's loads, and the assignment stays a cheapest one at
    every step (successive shortest paths). The cost of the last one is the number of moved partitions.
    """
    members, classes, highest = band
    members_count = members.bit_count()
    paddings = members_count * highest - sum(counts[number] for number in classes)
    network.takers[padding] = 0
    network.regaining[padding] = members if paddings else 0
    network.spare[padding] = paddings
    here = set(classes)
    for number in classes:
        network.spare[number] = counts[number]
    for member in bits(members):
        own = network.owned[member]
        network.held[member] = held = {number: own[number] for number in own if number in here}
        for number, count in held.items():
            network.spare[number] -= count
        own[padding] = 1
    _fill_with_unowned(network, band, padding)
    network.set_up(members, [*((number, 0) for number in classes), (padding, 1)], highest)
    everything = [*classes, padding]
    network.send_along_free_paths(members, everything)
    while network.over or any(network.spare[number] for number in everything):
        network.relabel(members, everything)
        network.send_along_free_paths(members, everything)
    for member in bits(members):
        network.held[member].pop(padding, None)
        del network.owned[member][padding]


def _fill_with_unowned(network: ClassNetwork, band: Band, padding: int) -> None:
    """Fill the members with unowned partitions, which cost 1 at any member, and then with the padding."""
    filling = WaterFilling(network, band.members, limit=band.highest)
    for number in sorted(band.classes, key=lambda number: network.takers[number].bit_count()):
        if network.spare[number]:
            network.spare[number] = filling.give(number, network.spare[number])
    for member in bits(filling.below(band.highest)):
        if not network.spare[padding]:
            break
        network.change(member, padding, 1)
        network.spare[padding] -= 1
