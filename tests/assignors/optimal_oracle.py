"""The best balance and the fewest moves, found in a plain way that shares nothing with `optimal`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Partition = tuple[str, int]
#: Sum of the squares of all loads, and how many partitions stayed with the member that had them.
Score = tuple[int, int]


def score(assigned: Mapping[str, Sequence[Partition]], owner: Mapping[Partition, str]) -> Score:
    squares = sum(len(mine) ** 2 for mine in assigned.values())
    return squares, sum(owner.get((t, p)) == m for m, mine in assigned.items() for t, p in mine)


def one_by_one(
    partitions: Sequence[Partition], subscribed: Mapping[str, Sequence[str]], owner: Mapping[Partition, str]
) -> Score:
    """Add one partition after the other along the cheapest chain of displacements (Bellman and Ford).

    One more square outweighs all moves there can be, so the cheapest assignment is the one wanted.
    """
    members = list(subscribed)
    outweighs = len(partitions) + 1
    held: dict[str, set[Partition]] = {member: set() for member in members}

    def cost(partition: Partition, member: str) -> int:
        return owner.get(partition) != member

    for added in partitions:
        reach = {m: (cost(added, m), [(added, m)]) for m in members if added[0] in subscribed[m]}
        changed = True
        while changed:
            changed = False
            for giver in list(reach):
                so_far, chain = reach[giver]
                for moving in held[giver]:
                    for taker in members:
                        price = so_far + cost(moving, taker) - cost(moving, giver)
                        if moving[0] not in subscribed[taker] or taker == giver:
                            continue
                        if taker not in reach or price < reach[taker][0]:
                            reach[taker] = (price, [*chain, (moving, taker)])
                            changed = True
        end = min(reach, key=lambda m: (outweighs * (2 * len(held[m]) + 1) + reach[m][0], m))
        for moving, taker in reach[end][1]:
            for mine in held.values():
                mine.discard(moving)
            held[taker].add(moving)
    return score({member: list(mine) for member, mine in held.items()}, owner)
