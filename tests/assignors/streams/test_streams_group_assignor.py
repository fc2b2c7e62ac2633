"""The sticky task assignor of streams groups (KIP-1071), on cases that are worked out by hand."""

from __future__ import annotations

from collections import Counter

from groupstorm.assignors.streams.groups import Placed, TaskCounts, TaskMember, assign_tasks
from groupstorm.javahash import JavaHashMap


def _placed(standby_replicas: int, *, is_4_4: bool = True, **members: TaskMember) -> dict[str, Placed]:
    table: JavaHashMap[str, TaskMember] = JavaHashMap()
    for name, member in members.items():
        table.put(name, member)
    counts = [TaskCounts("0", 4, is_stateful=True)]
    return assign_tasks(table, counts, standby_replicas, is_4_4=is_4_4)


def _member(process: str, active: str = "", standby: str = "", **offsets: int) -> TaskMember:
    tasks = [frozenset(("0", int(number)) for number in listed) for listed in (active, standby)]
    known = {("0", int(name.removeprefix("t"))): offset for name, offset in offsets.items()}
    return TaskMember(process, tasks[0], tasks[1], known)


def test_a_member_that_leaves_is_succeeded_by_its_standbys() -> None:
    """By hand: a keeps 0 and 1; 2 and 3 ran on the member that has left, and their standbys are on b and a: b
    gets both, because a has two tasks, its quota of four tasks for two members."""
    placed = _placed(0, a=_member("p", "01", "3"), b=_member("q", "", "2"))
    assert {name: sorted(number for _, number in one.active) for name, one in placed.items()} == {
        "a": [0, 1],
        "b": [2, 3],
    }


def test_the_state_on_disk_attracts_a_task_and_more_of_it_attracts_more() -> None:
    placed = _placed(0, a=_member("p", t0=10, t1=10), b=_member("q", t0=99, t2=5))
    assert ("0", 0) in placed["b"].active
    assert ("0", 1) in placed["a"].active
    assert ("0", 2) in placed["b"].active


def test_no_process_has_a_task_twice() -> None:
    placed = _placed(1, a=_member("p"), b=_member("p"))
    assert not placed["a"].standby | placed["b"].standby
    placed = _placed(1, a=_member("p"), b=_member("p"), c=_member("q"))
    for one in placed.values():
        assert not one.active & one.standby
    standbys = Counter(task for one in placed.values() for task in one.standby)
    assert standbys == Counter(("0", number) for number in range(4))
