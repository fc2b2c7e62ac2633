"""constrained-cooperative-sticky: the four phases of KAFKA-9987, for equal subscriptions.

With P partitions and N members, C_f = floor(P / N) and C_c = ceil(P / N):

1. Members keep their owned partitions, in their own order, up to C_c.
2. Members below C_f are filled up to it, one after the other.
3. If the partitions run out before that, members with C_c give up one each, their last one.
4. If partitions are left, members without C_c get one each.

The page leaves some points open. Here no partition is taken from a member if C_c = C_f, because phase 2 is
enough then; a member may need several partitions of others; phase 4 goes on at the member where it stopped;
and nonexistent partitions have no owner. Members are visited by id, as the page says.
"""

from __future__ import annotations

from collections import deque

from groupstorm.assignors.consumer.owners import believe_newest_generation
from groupstorm.assignors.consumer.planned import PlannedAssignor, Question
from groupstorm.assignors.contract import MapOrder, RebalanceProtocol


def constrained_cooperative_sticky(
    order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False
) -> PlannedAssignor:
    """The assignor; ``order`` and ``bug_compat`` matter to unequal subscriptions only."""
    return PlannedAssignor(
        "constrained-cooperative-sticky",
        plan_in_four_phases,
        believe_newest_generation,
        RebalanceProtocol.COOPERATIVE,
        needs_equal_subscriptions=True,
        order=order,
        bug_compat=bug_compat,
    )


def plan_in_four_phases(question: Question) -> list[list[int]]:
    """Assign every partition of the index exactly once, balanced to one."""
    assigned: list[list[int]] = [[] for _ in question.names]
    if not assigned:
        return assigned
    floor, extras = divmod(question.index.total, len(assigned))
    ceiling = floor + (extras > 0)
    members = question.by_id()
    unfilled: list[int] = []
    at_ceiling: deque[int] = deque()
    for member in members:
        owned = question.owned[member]
        assigned[member] = list(owned[:ceiling])
        if len(owned) < floor:
            unfilled.append(member)
        elif len(owned) > floor:
            at_ceiling.append(member)
    left = deque(question.left(assigned))
    for member in unfilled:
        while left and len(assigned[member]) < floor:
            assigned[member].append(left.popleft())
    for member in unfilled:
        while len(assigned[member]) < floor:
            assigned[member].append(assigned[at_ceiling.popleft()].pop())
    full = set(at_ceiling)
    for member in members:
        if left and member not in full:
            assigned[member].append(left.popleft())
    return assigned
