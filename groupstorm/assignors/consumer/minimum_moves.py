"""Of all best-balanced assignments of a band, find one that moves the fewest partitions."""

from __future__ import annotations

from groupstorm.assignors.consumer.bands import Band
from groupstorm.assignors.consumer.network import ClassNetwork, bits
from groupstorm.assignors.consumer.water_filling import WaterFilling


def minimize_moves(network: ClassNetwork, band: Band, counts: list[int], padding: int) -> None:
    """Assign the band's classes anew so that as many partitions as possible stay with their owners.

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
    """Give unowned partitions to the members with the lowest loads, up to the highest load; then the padding.

    An unowned partition costs 1 at any member, so the assignment remains a cheapest one.
    """
    filling = WaterFilling(network, band.members, limit=band.highest)
    for number in sorted(band.classes, key=lambda number: network.takers[number].bit_count()):
        if network.spare[number]:
            network.spare[number] = filling.give(number, network.spare[number])
    for member in bits(filling.below(band.highest)):
        if not network.spare[padding]:
            break
        network.change(member, padding, 1)
        network.spare[padding] -= 1
