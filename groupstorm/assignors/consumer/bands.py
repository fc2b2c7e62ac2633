"""The best balance, and the common structure of all best-balanced assignments: bands.

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

from groupstorm.assignors.consumer.network import ClassNetwork, bits


class Band(NamedTuple):
    """``members`` as a set of bits, the ``classes`` that only they hold, and the highest load."""

    members: int
    classes: list[int]
    highest: int


def find_bands(network: ClassNetwork, classes: Sequence[int], members: int) -> list[Band]:
    """Balance the members' loads as well as possible, and split the members into bands.

    ``network`` holds a complete assignment of the classes before, and a best-balanced one after.
    """
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
        upper_classes, lower_classes = _split(network, held, upper)
        problems.append((inside & ~upper, lower_classes))
        problems.append((upper, upper_classes))
    return bands


def _members_above(network: ClassNetwork, members: int, classes: Sequence[int], load: int) -> int:
    """Shift from above ``load`` to below it; returns the members that the remaining surplus can reach."""
    network.set_up(members, ((number, 0) for number in classes), load)
    return network.send_along_free_paths(members, classes)


def _split(network: ClassNetwork, classes: Sequence[int], upper: int) -> tuple[list[int], list[int]]:
    """Classes held by ``upper``, and the others."""
    in_upper: set[int] = set()
    for member in bits(upper):
        in_upper.update(network.held[member])
    return (
        [number for number in classes if number in in_upper],
        [number for number in classes if number not in in_upper],
    )
