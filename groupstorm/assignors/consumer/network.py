"""A flow network between classes of partitions and members, the machinery of optimal-sticky.

Partitions of topics with the same subscribers form a class, and only the number that a member has of a
class matters. The network holds these numbers. It shifts partitions along paths member -> class -> member:
a member gives up one of the class, which the next member takes.

A partition costs nothing at a member that owned one of its class, and 1 at any other. So a member's first
partitions of a class are free, up to as many as it owned there. A path with the smallest change of the sum
of costs is a shortest path; potentials (Edmonds and Karp; Ahuja, Magnanti and Orlin, Network Flows, chapter
9) make all its steps non-negative. Sets of members are integers, bit m for member m, so a class with
thousands of subscribers takes a step or two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_UNSEEN, _DEAD = -1, -2


def bits(members: int) -> Iterator[int]:
    digits = bin(members)[:1:-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


@dataclass
class Layers:
    """Members and classes by their number of steps from a surplus; the last layer lacks partitions."""

    members: list[int]
    of_class: list[int]
    reached: int


class ClassNetwork:
    """``takers``: per class the members that may take one at cost 1; ``owned``: per member, class -> count.

    ``held``: the members' current partitions, class -> count. ``spare`` per class, ``surplus`` per member:
    how many partitions too many there are, below 0 for a member that lacks some. Callers alternate
    `send_along_free_paths` and `relabel` until no surplus is left. A caller that sets the numbers up keeps
    the potentials valid: no step has a negative reduced cost, which is cost + potential of its start -
    potential of its end.
    """

    def __init__(self, takers: list[int], owned: list[dict[int, int]]) -> None:
        self.takers = takers
        self.owned = owned
        #: Per class the members that owned more of it than they have now, and may take one at no cost.
        self.regaining = [0] * len(takers)
        self.held: list[dict[int, int]] = [{} for _ in owned]
        self.spare = [0] * len(takers)
        self.surplus = [0] * len(owned)
        self.over = self.lacking = 0
        self.class_potential = [0] * len(takers)
        self.member_potential = [0] * len(owned)
        self.by_potential: dict[int, int] = {}

    def set_up(self, members: int, class_potentials: Iterable[tuple[int, int]], targets: int) -> None:
        """Prepare these members, each with ``targets`` partitions as its aim; their potential is 1."""
        self.by_potential = {1: members}
        for number, potential in class_potentials:
            self.class_potential[number] = potential
        self.over = self.lacking = 0
        for member in bits(members):
            self.member_potential[member] = 1
            surplus = self.surplus[member] = self.load(member) - targets
            if surplus > 0:
                self.over |= 1 << member
            elif surplus < 0:
                self.lacking |= 1 << member

    def load(self, member: int) -> int:
        return sum(self.held[member].values())

    # -- paths without reduced cost ----------------------------------------------------------------

    def send_along_free_paths(self, members: int, classes: Sequence[int]) -> int:
        """Shift from surplus to lack along free paths (Dinic); returns the members still in reach."""
        while True:
            over = self.over
            spare = [number for number in classes if self.spare[number] > 0]
            layers = self._layers(members, over, spare)
            if not layers.members:
                return layers.reached
            for number in spare:
                while self.spare[number] > 0 and self._send_some(layers, None, number):
                    pass
            for member in bits(over):
                while self.surplus[member] > 0 and self._send_some(layers, member, None):
                    pass

    def _layers(self, members: int, over: int, spare: Sequence[int]) -> Layers:
        held, owned, potential = self.held, self.owned, self.class_potential
        of_class = [_UNSEEN] * len(self.takers)
        layers = [over]
        unseen = members & ~over
        here = list(spare)
        for number in here:
            of_class[number] = 0
        while True:
            for member in bits(layers[-1]):
                own, height = owned[member], self.member_potential[member]
                for number, count in held[member].items():
                    if of_class[number] == _UNSEEN and potential[number] == height - (
                        count > own.get(number, 0)
                    ):
                        of_class[number] = len(layers) - 1
                        here.append(number)
            found = 0
            for number in here:
                found |= self._free_takers(number)
            found &= unseen
            unseen &= ~found
            if not found:
                return Layers([], of_class, members & ~unseen)
            if found & self.lacking:
                layers.append(found & self.lacking)
                return Layers(layers, of_class, members & ~unseen)
            layers.append(found)
            here = []

    def _free_takers(self, number: int) -> int:
        """The members that may take one of this class at reduced cost 0."""
        height = self.class_potential[number]
        free = self.takers[number] & self.by_potential.get(height + 1, 0)
        return free | (self.regaining[number] & self.by_potential.get(height, 0))

    def _send_some(self, layers: Layers, source: int | None, first_class: int | None) -> bool:
        """Send along one path from a member's surplus, or (None) from a class's; whether there is one."""
        path = self._find_path(layers, source, first_class)
        if path is None:
            return False
        sink = path[-1][1]
        surplus = self.spare[path[0][0]] if source is None else self.surplus[source]
        amount = min(surplus, -self.surplus[sink])
        giver = source
        for number, taker in path:
            amount = min(amount, self._room(giver, number, taker))
            giver = taker
        self._send(path, source, amount)
        if not self.lacking >> sink & 1:
            layers.members[-1] &= ~(1 << sink)
        return True

    def _find_path(
        self, layers: Layers, source: int | None, first_class: int | None
    ) -> list[tuple[int, int]] | None:
        """Steps (class, taker) to a member that lacks partitions; dead ends are removed from the layers."""
        path: list[tuple[int, int]] = []
        last = len(layers.members) - 1
        member = source
        while True:
            depth = len(path)
            step = None if depth == last else self._step(layers, member, depth, first_class)
            if step is not None:
                path.append(step)
                member = step[1]
            elif depth == last:
                return path
            elif not path:
                return None
            else:
                layers.members[depth] &= ~(1 << path.pop()[1])
                member = path[-1][1] if path else source

    def _step(
        self, layers: Layers, member: int | None, depth: int, first_class: int | None
    ) -> tuple[int, int] | None:
        """A class of which the member can give up one, and a member of the next layer that can take it."""
        if member is None:
            assert first_class is not None
            candidates = [first_class]
        else:
            own, height = self.owned[member], self.member_potential[member]
            candidates = [
                number
                for number, count in self.held[member].items()
                if layers.of_class[number] == depth
                and self.class_potential[number] == height - (count > own.get(number, 0))
            ]
        for number in candidates:
            if layers.of_class[number] != depth:
                continue
            takers = self._free_takers(number) & layers.members[depth + 1]
            if takers:
                return number, (takers & -takers).bit_length() - 1
            layers.of_class[number] = _DEAD
        return None

    def _room(self, giver: int | None, number: int, taker: int) -> int:
        """The number that can go from one to the other before the cost of the next one changes."""
        room = self.held[taker].get(number, 0) - self.owned[taker].get(number, 0)
        room = -room if room < 0 else 1 << 62
        if giver is None:
            return room
        count, own = self.held[giver][number], self.owned[giver].get(number, 0)
        return min(room, count - own if count > own else count)

    def _send(self, path: Sequence[tuple[int, int]], source: int | None, amount: int) -> None:
        giver = source
        if giver is None:
            self.spare[path[0][0]] -= amount
        else:
            self.surplus[giver] -= amount
            if not self.surplus[giver]:
                self.over &= ~(1 << giver)
        for number, taker in path:
            if giver is not None:
                self.change(giver, number, -amount)
            self.change(taker, number, amount)
            giver = taker
        sink = path[-1][1]
        self.surplus[sink] += amount
        if self.surplus[sink] >= 0:
            self.lacking &= ~(1 << sink)

    def change(self, member: int, number: int, by: int) -> None:
        count = self.held[member].get(number, 0) + by
        if count:
            self.held[member][number] = count
        else:
            del self.held[member][number]
        if count < self.owned[member].get(number, 0):
            self.regaining[number] |= 1 << member
        else:
            self.regaining[number] &= ~(1 << member)

    # -- potentials --------------------------------------------------------------------------------

    def relabel(self, members: int, classes: Sequence[int]) -> None:
        """New potentials, under which the cheapest path from a surplus to a lack is free (Dijkstra)."""
        reached: dict[int, int] = {}
        distance_of: dict[int, int] = {}
        near_members = {0: self.over}
        near_classes = {0: [number for number in classes if self.spare[number] > 0]}
        unseen = members
        while not self.lacking & ~unseen:
            distance = min(near_members.keys() | near_classes.keys())
            found = near_members.pop(distance, 0) & unseen
            unseen &= ~found
            reached[distance] = reached.get(distance, 0) | found
            for member in bits(found):
                own, height = self.owned[member], self.member_potential[member]
                for number, count in self.held[member].items():
                    if number not in distance_of:
                        cost = height - self.class_potential[number] - (count > own.get(number, 0))
                        near_classes.setdefault(distance + cost, []).append(number)
            for number in near_classes.pop(distance, ()):
                if number in distance_of:
                    continue
                distance_of[number] = distance
                height = self.class_potential[number]
                for potential, group in self.by_potential.items():
                    takers = self.takers[number] & group & unseen
                    if takers:
                        cost = distance + 1 + height - potential
                        near_members[cost] = near_members.get(cost, 0) | takers
                    takers = self.regaining[number] & group & unseen
                    if takers:
                        cost = distance + height - potential
                        near_members[cost] = near_members.get(cost, 0) | takers
        self._lower(reached, distance_of, max(reached))

    def _lower(self, reached: dict[int, int], distance_of: dict[int, int], limit: int) -> None:
        """Lower the potential of every node nearer than ``limit`` by the difference; the others stay."""
        for number, distance in distance_of.items():
            self.class_potential[number] -= limit - distance
        for distance, members in reached.items():
            if distance == limit:
                continue
            for member in bits(members):
                old = self.member_potential[member]
                new = self.member_potential[member] = old - (limit - distance)
                self.by_potential[old] &= ~(1 << member)
                self.by_potential[new] = self.by_potential.get(new, 0) | 1 << member
        self.by_potential = {height: group for height, group in self.by_potential.items() if group}


class WaterFilling:
    """Gives partitions of a class to the subscribers with the lowest loads, up to ``limit``."""

    def __init__(self, network: ClassNetwork, members: int, limit: int | None = None) -> None:
        self._network = network
        self._limit = limit
        self._with_load: dict[int, int] = {}
        for member in bits(members):
            load = network.load(member)
            self._with_load[load] = self._with_load.get(load, 0) | 1 << member

    def below(self, load: int) -> int:
        """The members with a lower load than that."""
        found = 0
        for known, members in self._with_load.items():
            if known < load:
                found |= members
        return found

    def give(self, number: int, amount: int) -> int:
        """Give ``amount`` partitions of a class to its takers; returns how many were left."""
        takers = self._network.takers[number]
        levels = sorted((load, members & takers) for load, members in self._with_load.items())
        levels = [(load, members) for load, members in levels if members]
        rising: list[tuple[int, int]] = []  # (load before, members)
        filled = level = 0
        while amount and (levels or filled):
            if not filled or (levels and levels[0][0] == level):
                level, members = levels.pop(0)
                rising.append((level, members))
                filled += members.bit_count()
                continue
            top = levels[0][0] if levels else level + amount
            if self._limit is not None:
                top = min(top, self._limit)
            if top <= level:
                break
            rise = min(top - level, amount // filled)
            if not rise:
                break
            level += rise
            amount -= rise * filled
        return self._settle(number, rising, level, amount)

    def _settle(self, number: int, rising: list[tuple[int, int]], level: int, amount: int) -> int:
        """Raise the members' loads to the level, and those of the first ``amount`` members one above it."""
        full = self._limit is not None and level >= self._limit
        for before, members in rising:
            for member in bits(members):
                more = level - before
                if amount and not full:
                    more += 1
                    amount -= 1
                elif not more:
                    break
                self._network.change(member, number, more)
                self._move(member, before, before + more)
        return amount

    def _move(self, member: int, before: int, after: int) -> None:
        self._with_load[before] &= ~(1 << member)
        if not self._with_load[before]:
            del self._with_load[before]
        self._with_load[after] = self._with_load.get(after, 0) | 1 << member
