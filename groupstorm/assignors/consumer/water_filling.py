"""Give partitions of a class to the subscribers with the lowest loads, level by level (water filling)."""

from __future__ import annotations

from groupstorm.assignors.consumer.network import ClassNetwork, bits


class WaterFilling:
    """Some members of a network by load; ``limit``: the highest load that a member gets (None: any)."""

    def __init__(self, network: ClassNetwork, members: int, limit: int | None = None) -> None:
        self._network = network
        self._limit = limit
        self._with_load: dict[int, int] = {}
        for member in bits(members):
            load = network.load(member)
            self._with_load[load] = self._with_load.get(load, 0) | 1 << member

    def below(self, load: int) -> int:
        """The members with a lower load than that, as a set of bits."""
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
