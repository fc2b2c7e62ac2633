"""The bands of all best-balanced assignments, and the fewest moves within a band.

Let x be the loads of an assignment and q a number. Let R be the members to which a partition can be
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
from typing import NamedTuple

from groupstorm.assignors.consumer.network import ClassNetwork, WaterFilling, bits


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
