"""optimal-sticky: the best balance, then the fewest moves, for any subscriptions.

Best balance: the loads, sorted, are the smallest there are, in the order of the highest, the second
highest and so on; the same assignments have the smallest sum of squares (Harvey, Ladner, Lovász,
Tamir: Semi-matchings for bipartite graphs and load balancing). Fewest moves: of these, one that
leaves the most partitions with the member that had them. Racks play no part.

1. Topics with the same subscribers are one class of partitions (`network`): where m owned o
   partitions of a class and gets y of it, min(o, y) can stay, whichever they are, since nobody else
   owned them; so numbers per member and class decide both aims.
2. `bands`: what all best-balanced assignments have in common.
3. `stickiest`: in each band, the one with the fewest moves.
4. Members keep their own partitions by (partition, topic), so that they keep some of every topic
   (KAFKA-16277); the rest is dealt round.

Everything runs on members and topics sorted by name: the answer does not depend on their order. Where
the cooperative form withholds what moves, the next round completes the same plan: all that is owned
can stay then, so nothing else moves, and two rounds are always enough.
"""

from __future__ import annotations

from collections.abc import Sequence

from groupstorm.assignors.consumer.bands import find_bands
from groupstorm.assignors.consumer.network import Network, bits
from groupstorm.assignors.consumer.owners import believe_newest_claims
from groupstorm.assignors.consumer.planned import PlannedAssignor, Question
from groupstorm.assignors.consumer.pouring import Pouring
from groupstorm.assignors.consumer.stickiest import keep_the_most
from groupstorm.assignors.contract import MapOrder, RebalanceProtocol


def optimal_sticky(order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> PlannedAssignor:
    """The eager one. Neither option makes a difference: there is no tie that a hash table decides."""
    return _named("optimal-sticky", RebalanceProtocol.EAGER, order, bug_compat)


def optimal_cooperative_sticky(
    order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False
) -> PlannedAssignor:
    """The same plan for a cooperative group: what moves is handed out in the second round."""
    return _named("optimal-sticky/cooperative", RebalanceProtocol.COOPERATIVE, order, bug_compat)


def _named(name: str, protocol: RebalanceProtocol, order: MapOrder, bug_compat: bool) -> PlannedAssignor:
    return PlannedAssignor(
        name,
        plan_optimally,
        believe_newest_claims,
        protocol,
        needs_equal_subscriptions=False,
        order=order,
        bug_compat=bug_compat,
    )


def plan_optimally(question: Question) -> list[list[int]]:
    """Every partition of the index exactly once."""
    return _Optimum(question).plan()


class _Optimum:
    """One run. Members are numbered by id here: ``self._member`` leads back to the question's numbers."""

    def __init__(self, question: Question) -> None:
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
        self._own = [self._own_by_class(question, rank, takers) for rank in range(len(self._member))]
        owned = [{number: len(mine) for number, mine in own.items()} for own in self._own]
        self._network = Network([*takers, 0], owned)  # and a class of nothing, for `keep_the_most`

    def _subscribers(self, question: Question) -> list[int]:
        """Per topic the set of its subscribers; members with the same list are looked at once."""
        together: dict[tuple[str, ...], int] = {}
        for rank, member in enumerate(self._member):
            topics = question.topics[member]
            together[topics] = together.get(topics, 0) | 1 << rank
        number_of = question.index.number_of_topic
        subscribers = [0] * len(number_of)
        for topics, members in together.items():
            for topic in topics:
                number = number_of.get(topic)
                if number is not None:
                    subscribers[number] |= members
        return subscribers

    def _own_by_class(self, question: Question, rank: int, takers: Sequence[int]) -> dict[int, list[int]]:
        """What a member owned of topics that it still subscribes to."""
        own: dict[int, list[int]] = {}
        for partition in sorted(question.owned[self._member[rank]], key=self._index.kept_key):
            number = self._class_of[self._index.topic_of[partition]]
            if takers[number] >> rank & 1:
                own.setdefault(number, []).append(partition)
        return own

    def plan(self) -> list[list[int]]:
        network, counts = self._network, self._counts
        void = len(counts)
        members = 0
        for takers in network.takers:
            members |= takers
        own, network.owned = network.owned, [{} for _ in network.owned]
        pouring = Pouring(network, members)
        for number in sorted(range(len(counts)), key=lambda number: network.takers[number].bit_count()):
            pouring.pour(number, counts[number])
        bands = find_bands(network, range(len(counts)), members)
        network.owned = own
        for band in bands:
            if any(own[member] for member in bits(band.members)):
                keep_the_most(network, band, counts, void)
        return self._partitions()

    def _partitions(self) -> list[list[int]]:
        """Which partitions, now that it is known how many of each class."""
        assigned: list[list[int]] = [[] for _ in self._member]
        kept = bytearray(self._index.size)
        wanting: list[list[tuple[int, int]]] = [[] for _ in self._counts]
        for rank, held in enumerate(self._network.held):
            mine = assigned[self._member[rank]]
            for number in sorted(held):
                own = self._own[rank].get(number, [])[: held[number]]
                mine.extend(own)
                for partition in own:
                    kept[partition] = 1
                if held[number] > len(own):
                    wanting[number].append((self._member[rank], held[number] - len(own)))
        free: list[list[int]] = [[] for _ in self._counts]
        every = [partition for partition in range(self._index.size) if not kept[partition]]
        for partition in sorted(every, key=self._index.kept_key):
            free[self._class_of[self._index.topic_of[partition]]].append(partition)
        for number, takers in enumerate(wanting):
            _deal(free[number], takers, assigned)
        return assigned


def _deal(free: Sequence[int], takers: list[tuple[int, int]], assigned: list[list[int]]) -> None:
    """Give (member, so many) their partitions, one a turn."""
    partitions = iter(free)
    while takers:
        for member, _ in takers:
            assigned[member].append(next(partitions))
        takers = [(member, more - 1) for member, more in takers if more > 1]
