"""two-phase-sticky: KAFKA-12464, and its two sketches as they stand there.

With P partitions and N members, C_f = floor(P / N), C_c = ceil(P / N), and C_r = P mod N members
that may have C_c:

1. Members keep what they owned, in their own order: C_c while fewer than C_r members do, else C_f.
2. Members below C_f are filled.

`two-phase-sticky` corrects the errors of the page: members that keep exactly C_f get one more, in the order
of their ids, before members that phase 2 has filled, until C_r members have C_c (as
AbstractStickyAssignor.ConstrainedAssignmentBuilder does today). The sketches do not:

* ``/pseudo-code`` gives nothing to a member that has C_f already. Partitions stay unassigned if no member is
  below C_f; on an empty start with P < N that is all of them.
* ``/java-sketch`` lets one member too many keep C_c (``numMaxCapacityMembers++ <= expected``), and then runs
  out of partitions: 4/4/2, and its page promises 4/3/3. The page ends after the first loop; the code here
  goes on as the pseudo-code.

Members are visited in the order of Kafka's hash table, as the Java sketch does; the pseudo-code says
"the sorted set", which ``MapOrder.SORTED`` and ``/pseudo-code`` follow.
"""

from __future__ import annotations

from collections import deque

from groupstorm.assignors.consumer.owners import believe_newest_generation
from groupstorm.assignors.consumer.planned import PlannedAssignor, Planner, Question
from groupstorm.assignors.contract import MapOrder, RebalanceProtocol


def two_phase_sticky(order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> PlannedAssignor:
    """The assignor; ``bug_compat`` matters to unequal subscriptions only."""
    return _named("two-phase-sticky", plan_in_two_phases, order, bug_compat)


def two_phase_pseudo_code(order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> PlannedAssignor:
    """The page's pseudo-code to the letter: may leave partitions unassigned."""
    return _named("two-phase-sticky/pseudo-code", plan_as_pseudo_code, order, bug_compat)


def two_phase_java_sketch(order: MapOrder = MapOrder.JAVA_HASH, bug_compat: bool = False) -> PlannedAssignor:
    """The page's Java to the letter: may leave partitions unassigned and members short by more than one."""
    return _named("two-phase-sticky/java-sketch", plan_as_java_sketch, order, bug_compat)


def _named(name: str, planner: Planner, order: MapOrder, bug_compat: bool) -> PlannedAssignor:
    return PlannedAssignor(
        name,
        planner,
        believe_newest_generation,
        RebalanceProtocol.EAGER,
        needs_equal_subscriptions=True,
        order=order,
        bug_compat=bug_compat,
    )


def plan_in_two_phases(question: Question) -> list[list[int]]:
    """Assign every partition of the index exactly once, balanced to one."""
    assigned: list[list[int]] = [[] for _ in question.names]
    if not assigned:
        return assigned
    floor, extras = divmod(question.index.total, len(assigned))
    unfilled: set[int] = set()
    at_floor: set[int] = set()
    at_ceiling = 0
    for member in question.visit:
        owned = question.owned[member]
        keep = floor
        if len(owned) < floor:
            unfilled.add(member)
        elif len(owned) > floor and at_ceiling < extras:
            at_ceiling += 1
            keep = floor + 1
        else:
            at_floor.add(member)
        assigned[member] = list(owned[:keep])
    left = deque(question.left(assigned))
    by_id = question.by_id()
    waiting = [member for member in by_id if member in at_floor]
    for member in by_id:
        if member in unfilled:
            _pop(left, floor - len(assigned[member]), assigned[member])
            waiting.append(member)
    for member in waiting[: extras - at_ceiling]:
        _pop(left, 1, assigned[member])
    return assigned


def plan_as_pseudo_code(question: Question) -> list[list[int]]:
    """The second block of pseudo-code, line by line; the first block is a diff without its marks."""
    assigned: list[list[int]] = [[] for _ in question.names]
    if not assigned:
        return assigned
    floor, extras = divmod(question.index.total, len(assigned))
    ceiling = floor + (extras > 0)
    at_ceiling = 0
    unfilled: list[int] = []
    for member in question.by_id():
        owned = question.owned[member]
        if len(owned) < floor:
            assigned[member] = list(owned)
            unfilled.append(member)
        elif len(owned) >= ceiling and at_ceiling < extras:
            assigned[member] = list(owned[:ceiling])
            at_ceiling += 1
        else:
            assigned[member] = list(owned[:floor])
    _fill_as_pseudo_code(question, assigned, unfilled, at_ceiling)
    return assigned


def plan_as_java_sketch(question: Question) -> list[list[int]]:
    """The first loop in Java: it compares the counter with ``<=``, and counts rejected members, too."""
    assigned: list[list[int]] = [[] for _ in question.names]
    if not assigned:
        return assigned
    floor, extras = divmod(question.index.total, len(assigned))
    ceiling = floor + (extras > 0)
    counter = 0
    unfilled: set[int] = set()
    for member in question.visit:
        owned = question.owned[member]
        keep = floor
        if len(owned) < floor:
            unfilled.add(member)
        elif len(owned) >= ceiling:
            keep = ceiling if counter <= extras else floor
            counter += 1
        assigned[member] = list(owned[:keep])
    by_id = [member for member in question.by_id() if member in unfilled]
    _fill_as_pseudo_code(question, assigned, by_id, counter)
    return assigned


def _fill_as_pseudo_code(
    question: Question, assigned: list[list[int]], unfilled: list[int], at_ceiling: int
) -> None:
    """Fill members below C_f to C_c while fewer than C_r members count as full, else to C_f."""
    floor, extras = divmod(question.index.total, len(assigned))
    left = deque(question.left(assigned))
    for member in unfilled:
        capacity = floor
        if at_ceiling < extras:
            capacity = floor + 1
            at_ceiling += 1
        _pop(left, capacity - len(assigned[member]), assigned[member])


def _pop(left: deque[int], count: int, onto: list[int]) -> None:
    for _ in range(min(count, len(left))):
        onto.append(left.popleft())
