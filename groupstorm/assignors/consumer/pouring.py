"""Give partitions of a class to those of its subscribers that have the least, as water finds its level."""

from __future__ import annotations

from groupstorm.assignors.consumer.network import Network, bits


class Pouring:
    """Some members of a network by load; ``limit``: nobody gets more than that (None: no limit)."""

    def __init__(self, network: Network, members: int, limit: int | None = None) -> None:
        self._network = network
        self._limit = limit
        self._with_load: dict[int, int] = {}
        for member in bits(members):
            load = network.load(member)
            self._with_load[load] = self._with_load.get(load, 0) | 1 << member

    def below(self, load: int) -> int:
        """The members with less than that."""
        found = 0
        for known, members in self._with_load.items():
            if known < load:
                found |= members
        return found

    def pour(self, number: int, amount: int) -> int:
        """Give ``amount`` of a class to its takers; returns how many nobody could take."""
        takers = self._network.takers[number]
        levels = sorted((load, members & takers) for load, members in self._with_load.items())
        levels = [(load, members) for load, members in levels if members]
        rising: list[tuple[int, int]] = []  # (load before, members)
        wet = level = 0
        while amount and (levels or wet):
            if not wet or (levels and levels[0][0] == level):
                level, members = levels.pop(0)
                rising.append((level, members))
                wet += members.bit_count()
                continue
            top = levels[0][0] if levels else level + amount
            if self._limit is not None:
                top = min(top, self._limit)
            if top <= level:
                break
            rise = min(top - level, amount // wet)
            if not rise:
                break
            level += rise
            amount -= rise * wet
        return self._settle(number, rising, level, amount)

    def _settle(self, number: int, rising: list[tuple[int, int]], level: int, amount: int) -> int:
        """Bring the members up to the level, and the first ``amount`` of them one above it."""
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
