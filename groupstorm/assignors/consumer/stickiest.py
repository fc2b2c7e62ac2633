"""Of the best-balanced assignments of a band the one that moves the fewest partitions."""

from __future__ import annotations

from groupstorm.assignors.consumer.bands import Band
from groupstorm.assignors.consumer.network import Network, bits
from groupstorm.assignors.consumer.pouring import Pouring


def keep_the_most(network: Network, band: Band, counts: list[int], void: int) -> None:
    """Assign the band's classes anew so that as many partitions as possible stay where they were.

    ``counts``: partitions per class. All members are filled up to the band's highest load: those that
    are to have one less hold one of a class of nothing, ``void``, which costs nothing anywhere. The
    start is what was owned, all of it, which no cheaper assignment of that many partitions can beat;
    shortest paths keep it the cheapest while they bring it to the band's loads (successive shortest
    paths). The end is a cheapest assignment, and what it costs is what did not stay.
    """
    members, classes, highest = band
    members_count = members.bit_count()
    voids = members_count * highest - sum(counts[number] for number in classes)
    network.takers[void] = 0
    network.regaining[void] = members if voids else 0
    network.spare[void] = voids
    here = set(classes)
    for number in classes:
        network.spare[number] = counts[number]
    for member in bits(members):
        own = network.owned[member]
        network.held[member] = held = {number: own[number] for number in own if number in here}
        for number, count in held.items():
            network.spare[number] -= count
        own[void] = 1
    _start(network, band, void)
    network.set_up(members, [*((number, 0) for number in classes), (void, 1)], highest)
    everything = [*classes, void]
    network.send_along_free_paths(members, everything)
    while network.over or any(network.spare[number] for number in everything):
        network.relabel(members, everything)
        network.send_along_free_paths(members, everything)
    for member in bits(members):
        network.held[member].pop(void, None)
        del network.owned[member][void]


def _start(network: Network, band: Band, void: int) -> None:
    """Give what nobody owned to those who have the least, up to the highest load; then the voids.

    Such a partition costs 1 wherever it goes, so the start remains a cheapest one.
    """
    pouring = Pouring(network, band.members, limit=band.highest)
    for number in sorted(band.classes, key=lambda number: network.takers[number].bit_count()):
        if network.spare[number]:
            network.spare[number] = pouring.pour(number, network.spare[number])
    for member in bits(pouring.below(band.highest)):
        if not network.spare[void]:
            break
        network.change(member, void, 1)
        network.spare[void] -= 1
