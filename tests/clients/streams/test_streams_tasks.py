"""Tasks on a thread: locks, restoration, suspension, standbys, what a host keeps (TaskManagerTest)."""

from __future__ import annotations

import pytest

from groupstorm.clients.streams.state import CHECKPOINT_RECORDS
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.trace.events import streams as events
from tests.clients.streams.streams_host import RECORDS, SECOND, STATELESS, Host, sums


def running(host: Host, *tasks: int) -> TaskManager:
    """A thread that runs these, restored from nothing, at 100 s."""
    thread = host.thread()
    thread.assigned(set(tasks), set(), 0)
    thread.progress(100 * SECOND)
    for task in thread.restored:
        thread.run(task, 100 * SECOND)
    assert thread.running == sorted(tasks)
    host.emitted.clear()
    return thread


def test_a_task_restores_then_waits_for_its_positions_then_runs() -> None:
    host = Host()
    thread = host.thread()
    thread.assigned({0}, set(), 0)
    assert host.emitted == [
        events.TaskRestoring("g", "t1", "instance-0", "0_0", RECORDS, RECORDS * 10, "nothing")
    ]
    assert thread.next_us(0) == 10 * SECOND
    thread.progress(10 * SECOND)
    assert (thread.restored, thread.running) == ([0], [])
    thread.run(0, 11 * SECOND)
    assert (thread.restored, thread.running) == ([], [0])
    assert host.emitted[1:] == [
        events.TaskRestored("g", "t1", "instance-0", "0_0", RECORDS * 10, 10 * SECOND),
        events.TaskRunning("g", "t1", "instance-0", "0_0", 11 * SECOND),
    ]
    assert host.read == [(0, True, RECORDS)]


def test_a_stateless_task_restores_nothing_and_has_no_offset_sum() -> None:
    host = Host()
    thread = host.thread()
    thread.assigned({STATELESS}, set(), 0)
    assert thread.restored == [STATELESS]
    thread.run(STATELESS, 0)
    assert sums(thread, 0) == {}
    assert host.read == []


def test_offset_sums_have_running_tasks_other_tasks_and_unused_state() -> None:
    """TaskManager.getTaskOffsetSums: -2 for a running active task."""
    host = Host()
    host.directory.keep(3, 777, 0)
    thread = running(host, 0)
    thread.assigned({0, 1}, {2}, 100 * SECOND)
    found = sums(thread, 104 * SECOND)
    assert found == {0: -2, 1: 40_000, 2: 0, 3: 777}


def test_a_suspended_task_keeps_its_state_and_is_closed_with_the_next_assignment() -> None:
    host = Host()
    thread = running(host, 0)
    host.more[0] = 500
    thread.suspend([0], "revoked", 101 * SECOND)
    assert host.names() == ["task_suspended 0_0"]
    assert sums(thread, 101 * SECOND) == {0: RECORDS + 500}
    thread.assigned(set(), set(), 102 * SECOND)
    assert host.names() == ["task_closed 0_0"]
    assert host.directory.position(0) == RECORDS + 500
    assert thread.held == []


def test_a_task_that_comes_back_restores_what_it_has_missed() -> None:
    host = Host()
    thread = running(host, 0)
    thread.suspend([0], "revoked", 101 * SECOND)
    thread.assigned(set(), set(), 101 * SECOND)
    host.more[0] = 20_000
    host.emitted.clear()
    thread.assigned({0}, set(), 200 * SECOND)
    assert host.emitted == [
        events.TaskRestoring("g", "t1", "instance-0", "0_0", 20_000, 200_000, "checkpoint")
    ]
    assert thread.next_us(200 * SECOND) == 202 * SECOND


def test_a_standby_becomes_active_with_its_state_and_standby_again() -> None:
    host = Host()
    thread = host.thread()
    thread.assigned(set(), {0}, 0)
    thread.progress(10 * SECOND)
    host.more[0] = 1_000
    assert host.names() == ["standby_started 0_0", "standby_caught_up 0_0"]
    thread.assigned({0}, set(), 20 * SECOND)
    assert host.names() == ["task_closed 0_0", "task_restoring 0_0"]
    thread.progress(20 * SECOND)
    thread.run(0, 20 * SECOND)
    thread.suspend([0], "revoked", 30 * SECOND)
    host.emitted.clear()
    thread.assigned(set(), {0}, 30 * SECOND)
    assert host.names() == ["task_closed 0_0", "standby_started 0_0"]
    assert thread.standbys == [0]
    assert thread.gaps(30 * SECOND) == {0: 0}


def test_records_read_by_standbys_are_counted_once() -> None:
    host = Host()
    thread = host.thread()
    thread.assigned(set(), {0}, 0)
    thread.progress(10 * SECOND)
    host.more[0] = 1_000
    thread.progress(20 * SECOND)
    thread.assigned(set(), set(), 30 * SECOND)
    assert host.read == [(0, False, RECORDS + 1_000)]


def test_state_belongs_to_one_thread_of_a_host_at_a_time() -> None:
    host = Host()
    first, second = running(host, 0), host.thread("t2")
    second.assigned({0}, set(), 101 * SECOND)
    assert [second.waits_for_state] == [True]
    assert host.names() == []
    first.suspend([0], "revoked", 102 * SECOND)
    second.try_locks(102 * SECOND)
    assert [second.waits_for_state] == [True], "suspended is not closed"
    first.assigned(set(), set(), 103 * SECOND)
    second.try_locks(103 * SECOND)
    assert not second.waits_for_state
    second.progress(103 * SECOND)
    assert second.restored == [0]


def test_a_task_that_waits_for_its_state_can_be_taken_away_again() -> None:
    host = Host()
    running(host, 0)
    second = host.thread("t2")
    second.assigned({0}, set(), 101 * SECOND)
    second.suspend([0], "revoked", 102 * SECOND)
    second.assigned(set(), set(), 102 * SECOND)
    assert second.held == []
    assert host.names() == []


def test_unused_state_is_removed_after_the_cleanup_delay() -> None:
    host = Host(cleanup_delay_us=10 * SECOND)
    host.directory.keep(0, 5, 0)
    host.directory.keep(1, 6, 0)
    assert host.directory.lock(1, "another")
    thread = host.thread()
    assert sums(thread, 10 * SECOND) == {0: 5}
    thread.assigned(set(), set(), 10 * SECOND)
    assert sums(thread, 10 * SECOND + 1) == {}
    assert host.directory.position(1) == 6, "what is used stays"


@pytest.mark.parametrize(("more", "kept"), [(9_999, 0), (10_000, 10_000), (25_000, 20_000)])
def test_a_crash_leaves_the_last_checkpoint(more: int, kept: int) -> None:
    """OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT records apart, counted from where the task was opened."""
    host = Host()
    host.directory.keep(0, RECORDS, 0)
    thread = host.thread()
    thread.assigned({0}, set(), 0)
    thread.progress(0)
    thread.run(0, 0)
    host.more[0] = more
    thread.gone("crash", SECOND)
    assert host.directory.position(0) == RECORDS + kept
    assert CHECKPOINT_RECORDS == 10_000
    assert "task_suspended 0_0" in host.names()


def test_a_lost_member_closes_active_tasks_and_keeps_standbys() -> None:
    """TaskManager.handleLostAll."""
    host = Host()
    thread = running(host, 0)
    thread.assigned({0}, {1}, 100 * SECOND)
    host.emitted.clear()
    thread.lost(101 * SECOND)
    assert host.names() == ["task_suspended 0_0", "task_closed 0_0"]
    assert thread.held == [1]
