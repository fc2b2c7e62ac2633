"""What the processes of a group say together: offsets, lag, whether all is settled, who waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.coordinator.messages import Heartbeat, JoinGroup, SyncGroup
from groupstorm.storms.world.members import Members

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
JOIN = JoinGroup("g", "", None, 10_000, 20_000, "consumer", (("range", b""),), 9, "c")
SYNC = SyncGroup("g", "m-1", None, 1, "consumer", "range", (), 5)


class Process:
    """A process that is the member ``<name>-1``, and holds what has processed 7 records of each partition."""

    def __init__(self, name: str, started: bool = True, settled: bool = True, parked: Any = None) -> None:
        self.name = name
        self.started = started
        self.settled = settled
        self.membership = SimpleNamespace(generation=SimpleNamespace(member_id=f"{name}-1"))
        self.connection = SimpleNamespace(parked=None if parked is None else SimpleNamespace(request=parked))
        self.commits_settled = 0
        self.periodic_requests = SimpleNamespace(settle_commits=self._settle_commits)
        self.work = SimpleNamespace(
            owner=name,
            loop=SimpleNamespace(keeps_up=lambda now_us: False),
            positions=lambda now_us: {P0: 7, P1: 7},
        )

    def _settle_commits(self) -> None:
        self.commits_settled += 1


def members(*processes: Any, **records: Any) -> Members:
    known: Any = SimpleNamespace(**records)
    found = Members(known)
    for process in processes:
        found.add(process)
    return found


def group(state: str, *member_ids: str) -> Any:
    return SimpleNamespace(state=state, members=dict.fromkeys(member_ids))


def test_a_process_that_is_gone_takes_its_name_along_unless_a_later_one_has_it() -> None:
    earlier: Any = Process("a")
    later: Any = Process("a")
    found = members(earlier, later)
    found.remove(earlier)
    assert found.by_name == {"a": later}
    found.remove(later)
    assert found.by_name == {}
    found.remove(later)  # which is gone already


def test_offsets_are_those_that_count_after_the_background_commits_of_the_owners() -> None:
    """A partition without an offset has -1, and one that is committed at its beginning 0."""
    owner, other = Process("a"), Process("b")
    gone = Process("gone")
    committed = {P1: 0}
    found = members(owner, other, holders={P0: [owner.work, gone.work]}, committed=committed)
    assert found.committed((P0, P1)) == (-1, 0)
    assert (owner.commits_settled, other.commits_settled, gone.commits_settled) == (1, 0, 0)
    committed[P0] = 5
    assert found.committed((P1, P0)) == (0, 5)


def test_lag_counts_what_no_process_that_runs_has_processed() -> None:
    """Each of two partitions has 10 records, and a process that is gone had come to 2 on the first."""
    logs = SimpleNamespace(end=lambda partition, now_us: 10)
    records = {"furthest": {P0: 2}, "logs": logs}
    assert members(Process("a"), **records).lag((P0, P1), 0) == 3 + 3
    assert members(**records).lag((P0, P1), 0) == 8 + 10
    assert members(**records).lag((P0,), 0) == 8


@pytest.mark.parametrize(
    ("state", "settled"),
    [
        ("Stable", True),
        ("Empty", True),
        ("PreparingRebalance", False),
        ("CompletingRebalance", False),
        ("Assigning", False),
        ("Reconciling", False),
        ("Dead", False),
    ],
)
def test_a_group_is_settled_in_two_of_its_states(state: str, settled: bool) -> None:
    assert members(Process("a")).settled_in(group(state, "a-1")) is settled


@pytest.mark.parametrize(
    ("member_ids", "settled"),
    [(("a-1", "b-1"), True), (("a-1",), False), (("a-1", "b-1", "gone-1"), False), (("a-1", "b-2"), False)],
)
def test_a_settled_group_has_exactly_the_processes_that_have_started(
    member_ids: tuple[str, ...], settled: bool
) -> None:
    found = members(Process("a"), Process("b"), Process("not yet", started=False, settled=False))
    assert found.settled_in(group("Stable", *member_ids)) is settled


def test_a_group_is_not_settled_while_one_of_its_processes_is_not() -> None:
    found = members(Process("a"), Process("b", settled=False))
    assert found.settled_in(group("Stable", "a-1", "b-1")) is False


@pytest.mark.parametrize(("started", "settled"), [(False, True), (True, False)])
def test_without_a_group_all_is_settled_if_no_process_has_started(started: bool, settled: bool) -> None:
    assert members(Process("a", started=started)).settled_in(None) is settled


def test_a_member_belongs_to_the_process_of_its_name_alone() -> None:
    found = members(Process("a"), Process("b"))
    asked = [("a", "a-1"), ("b", "b-1"), ("a", "b-1"), ("c", "c-1")]
    assert [found.has(*who) for who in asked] == [True, True, False, False]


def test_only_parked_requests_of_a_round_wait_for_an_answer() -> None:
    found = members(
        Process("idle"),
        Process("joins", parked=JOIN),
        Process("waits for a write", parked=Heartbeat("g", "m-1", None, 1, 4)),
        Process("syncs", parked=SYNC),
    )
    assert found.unanswered == ["joins", "syncs"]
