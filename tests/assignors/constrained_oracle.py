"""The constrained sticky assignment once more, plainly: sets of tuples, step by step, no racks.

Slow and short, an oracle for the quick one. ``owned`` has to iterate as Kafka's hash table does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

Partition = tuple[str, int]


def constrained(
    partitions_per_topic: Mapping[str, int],
    owned: Mapping[str, Sequence[Partition]],
    disputed: frozenset[Partition] = frozenset(),
) -> tuple[dict[str, list[Partition]], dict[Partition, str]]:
    """Partitions per member, and which of them change hands."""
    total = sum(partitions_per_topic.values())
    floor, extras = divmod(total, len(owned))
    ceiling = floor + (extras > 0)
    over = 0
    assigned: dict[str, list[Partition]] = {member: [] for member in owned}
    below: list[str] = []
    exact: list[str] = []
    revoked: dict[Partition, str] = {}
    for member, claims in owned.items():
        mine = [tp for tp in sorted(claims, key=lambda tp: (tp[1], tp[0])) if tp not in disputed]
        if len(mine) < floor:
            keep = len(mine)
            below.append(member)
        elif len(mine) >= ceiling and over < extras:
            keep = ceiling
            over += 1
            if over == extras:
                exact = []
        else:
            keep = floor
            if over < extras:
                exact.append(member)
        assigned[member] = mine[:keep]
        revoked.update(dict.fromkeys(mine[keep:], member))
    kept = {tp for mine in assigned.values() for tp in mine}
    every = [(topic, p) for topic in sorted(partitions_per_topic) for p in range(partitions_per_topic[topic])]
    below.sort()
    waiting = deque(sorted(exact))
    transferring: dict[Partition, str] = {}
    turn = 0
    for tp in (tp for tp in every if tp not in kept):
        if below:
            turn %= len(below)
            member = below[turn]
        else:
            member = waiting.popleft()
        assigned[member].append(tp)
        if revoked.get(tp, member) != member or tp in disputed:
            transferring[tp] = member
        if below and len(assigned[member]) == floor:
            del below[turn]
            waiting.append(member)
        else:
            turn += 1
    return assigned, transferring
