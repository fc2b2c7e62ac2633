"""Origins of a time without an owner: the rules of docs/figures.md on traces of a few rows."""

from __future__ import annotations

import pytest

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.imported import GroupImported
from groupstorm.trace.schema import Source
from tests.figures.tracing import Trace


def two_members() -> Trace:
    trace = Trace.begun("t-0", "t-1")
    trace.start(1, "a")
    trace.start(1, "b")
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)})
    return trace


def costs(trace: Trace) -> tuple[object, ...]:
    """(deployments, their un-owned seconds; crashes, theirs; neither's)."""
    figures = trace.figures()
    deploy, crash = figures.deploy_unowned_partition_seconds, figures.crash_unowned_partition_seconds
    assert deploy is not None
    assert crash is not None
    assert figures.unowned_partition_seconds is not None
    rest = figures.unowned_partition_seconds - deploy - crash
    return figures.deploys, deploy, figures.crashes, crash, rest


def test_a_member_that_stops_and_the_rebalance_that_it_causes() -> None:
    trace = two_members()
    trace.step(10, "stop", "a", "SIGTERM")
    trace.revoke(12, "a", 1, "t-0", cause="close")
    trace.remove(12, "a", cause="left")
    trace.revoke(14, "b", 1, "t-1")  # eager: b gives up everything to join again
    trace.round(17, 2, {"b": ("t-0", "t-1")})
    trace.end(30)
    assert costs(trace) == (1, 5 + 3, 0, 0, 0)
    figures = trace.figures()
    assert figures.cost_per_deploy_partition_seconds == 8
    assert figures.cost_per_crash_partition_seconds is None


def test_a_member_that_crashes_and_its_return() -> None:
    """The costs of its session's end belong to the crash, and so do those of its new process."""
    trace = two_members()
    trace.step(10, "crash-restart", "a", "SIGKILL")
    trace.crash(10, "a", 1, "t-0")
    trace.step(15, "busy", "b", "for 1 ms")
    trace.start(20, "a", member_id="a-2")
    trace.revoke(21, "b", 1, "t-1")
    trace.round(23, 2, {"b": ("t-1",)})
    trace.remove(55, "a", cause="session-expired")
    trace.revoke(56, "b", 2, "t-1")
    trace.round(57, 3, {"b": ("t-0", "t-1")})
    trace.end(60)
    assert costs(trace) == (0, 0, 1, 47 + 2 + 1, 0)
    assert trace.figures().cost_per_crash_partition_seconds == 50


def test_a_process_that_comes_back_belongs_to_the_end_of_the_one_before() -> None:
    """Between a's crash and its return b is stopped: the rebalance of a's return belongs to the crash."""
    trace = two_members()
    trace.start(2, "c")
    trace.crash(5, "a", 1, "t-0")
    trace.take(6, "c", 1, "t-0")
    trace.step(7, "stop", "b", "SIGTERM")
    trace.revoke(7, "b", 1, "t-1", cause="close")
    trace.take(9, "c", 1, "t-1")
    trace.start(20, "a", member_id="a-2")
    trace.revoke(21, "c", 1, "t-0", "t-1")
    trace.round(24, 2, {"a": ("t-0",), "c": ("t-1",)})
    trace.start(30, "d")  # nobody's successor: it belongs to whatever came last
    trace.revoke(31, "c", 2, "t-1")
    trace.round(32, 3, {"c": (), "d": ("t-1",)})
    trace.end(40)
    assert costs(trace) == (1, 2, 1, 1 + 6 + 1, 0)


def test_threads_of_kafka_streams_stop_with_their_process() -> None:
    """A step asks process i, whose threads are members, in a rolling restart; one thread is killed meanwhile.
    Thread 1 waits 5 s for its successor, thread 2 waits 3 s."""
    one, two = "i-StreamThread-1", "i-StreamThread-2"
    trace = Trace.begun("t-0", "t-1")
    trace.start(1, one)
    trace.start(1, two)
    trace.round(1, 1, {one: ("t-0",), two: ("t-1",)})
    trace.step(9, "rolling-restart", None, "all")
    trace.step(10, "rolling-restart", "i", "SIGTERM")
    trace.revoke(10, one, 1, "t-0", cause="close")
    trace.crash(12, two, 1, "t-1")
    trace.start(14, one, member_id="1-2")
    trace.start(14, two, member_id="2-2")
    trace.round(15, 2, {one: ("t-0",), two: ("t-1",)})
    trace.end(20)
    assert costs(trace) == (1, 5 + 3, 0, 0, 0)


def test_a_process_that_was_restarted_may_crash() -> None:
    trace = two_members()
    trace.step(10, "restart", "a", "SIGTERM")
    trace.revoke(10, "a", 1, "t-0", cause="close")
    trace.remove(10, "a", cause="left")
    trace.start(12, "a", member_id="a-2")
    trace.take(13, "a", 2, "t-0")
    trace.crash(20, "a", 2, "t-0", member_id="a-2")
    trace.end(21)
    assert costs(trace) == (1, 3, 1, 1, 0)


def test_a_window_counts_what_begins_in_it() -> None:
    trace = two_members()
    trace.step(10, "stop", "a", "SIGTERM")
    trace.revoke(10, "a", 1, "t-0", cause="close")
    trace.crash(12, "b", 1, "t-1")
    trace.rejoin(13, "c", "poll-timeout")
    trace.end(20)
    figures = trace.figures(15_000_000)
    assert (figures.deploys, figures.deploy_unowned_partition_seconds) == (0, 5)
    assert (figures.crashes, figures.crash_unowned_partition_seconds) == (0, 5)
    assert figures.max_poll_interval_exceeded == 0


def test_a_rolling_restart_is_one_deployment() -> None:
    trace = two_members()
    trace.step(10, "rolling-restart", None, "2 processes are replaced, ordinal")
    for at_s, member, partition in ((10, "a", "t-0"), (20, "b", "t-1")):
        trace.step(at_s, "rolling-restart", member, "SIGTERM")
        trace.revoke(at_s, member, 1, partition, cause="close")
        trace.remove(at_s, member, cause="left")
        trace.start(at_s + 2, member)
        trace.take(at_s + 4, member, 1, partition)
    trace.step(25, "rollout-complete", None, "rolling-restart: after 15.0 s")
    trace.step(30, "rolling-restart", None, "2 processes are replaced, ordinal")
    trace.step(30, "rolling-restart", "a", "SIGTERM")
    trace.step(31, "rolling-restart", None, "1 pods are replaced; pause")  # a canary says so on its way
    trace.end(40)
    assert costs(trace) == (2, 4 + 4, 0, 0, 0)
    assert trace.figures().cost_per_deploy_partition_seconds == 4


def test_a_deployment_that_overtakes_another_is_a_second_one() -> None:
    """Two are announced and one completes: none of the members that stop is a deployment by itself."""
    trace = two_members()
    trace.step(10, "rolling-restart", None, "2 processes are replaced, ordinal")
    trace.step(12, "rolling-restart", None, "2 processes are replaced, ordinal")
    for at_s, member, partition in ((15, "a", "t-0"), (20, "b", "t-1")):
        trace.step(at_s, "rolling-restart", member, "SIGTERM")
        trace.revoke(at_s, member, 1, partition, cause="close")
        trace.take(at_s + 4, member, 1, partition)
    trace.step(25, "rollout-complete", None, "rolling-restart: after 13.0 s")
    trace.end(40)
    assert costs(trace)[:2] == (2, 4 + 4)


def test_two_rollouts_side_by_side_end_one_by_one() -> None:
    trace = two_members()
    trace.step(10, "rolling-restart", None, "2 processes are replaced, ordinal")
    trace.step(12, "drain-node", None, "1 pods are evicted, 1 at once")
    trace.step(13, "rollout-complete", None, "drain-node: after 1.0 s")
    trace.step(15, "rolling-restart", "a", "SIGTERM")
    trace.step(17, "rolling-restart", "b", "SIGTERM")
    trace.end(40)
    assert costs(trace)[0] == 2


def test_a_surge_begins_with_new_members() -> None:
    """Its deployment is announced before anybody stops: the rebalance of the first arrival is its own."""
    trace = two_members()
    trace.step(10, "rolling-restart", None, "2 processes are replaced, ordinal")
    trace.start(11, "a-next")
    trace.revoke(12, "a", 1, "t-0")
    trace.round(15, 2, {"a-next": ("t-0",), "a": ()})
    trace.end(20)
    assert costs(trace) == (1, 3, 0, 0, 0)


def test_members_that_stop_at_one_instant_are_one_deployment() -> None:
    trace = two_members()
    for member in ("a", "b"):
        trace.step(10, "stop", member, "SIGTERM")
    trace.step(20, "stop", "c", "SIGTERM")
    trace.end(30)
    assert costs(trace)[:3] == (2, 0, 0)


def test_a_member_that_closes_without_a_step_is_planned() -> None:
    trace = two_members()
    trace.revoke(12, "a", 1, "t-0", cause="close")
    trace.end(15)
    assert costs(trace) == (1, 3, 0, 0, 0)


def test_a_process_that_is_killed_after_sigterm_belongs_to_the_deployment() -> None:
    trace = two_members()
    trace.step(10, "stop", "a", "SIGTERM")
    trace.crash(40, "a", 1, "t-0")
    trace.start(42, "a", member_id="a-2")
    trace.remove(50, "a", cause="session-expired")  # the first process's id, under the name of the second
    trace.revoke(52, "b", 1, "t-1")
    trace.round(53, 2, {"b": ("t-0", "t-1")})
    trace.end(60)
    assert costs(trace) == (1, 13 + 1, 0, 0, 0)


def test_a_static_member_that_expires_while_it_restarts_belongs_to_the_deployment() -> None:
    trace = two_members()
    trace.step(10, "restart", "a", "SIGTERM")
    trace.revoke(10, "a", 1, "t-0", cause="close")
    trace.remove(20, "a", cause="session-expired")
    trace.revoke(21, "b", 1, "t-1")
    trace.round(23, 2, {"b": ("t-0", "t-1")})
    trace.end(30)
    assert costs(trace) == (1, 13 + 2, 0, 0, 0)


def test_a_zombie_breaks_off_once() -> None:
    """Its session ends first, and it learns of it later; when it is back and breaks off again, it counts."""
    trace = two_members()
    trace.pause(10, "a", "t-0")
    trace.remove(20, "a", cause="session-expired")
    trace.revoke(21, "b", 1, "t-1")
    trace.round(22, 2, {"b": ("t-1",)})
    trace.resume(30, "a", "t-0")
    trace.lose(31, "a", 1, "t-0")
    trace.start(32, "a", member_id="a-2")
    trace.round(33, 3, {"a": ("t-0",)})
    assert costs(trace) == (0, 0, 1, 1 + 2, 0)
    trace.lose(40, "a", 3, "t-0", member_id="a-2")
    trace.end(41)
    assert costs(trace) == (0, 0, 2, 1 + 2 + 1, 0)


@pytest.mark.parametrize("is_removed_first", [True, False])
def test_a_member_that_has_reset_its_id_breaks_off_once(is_removed_first: bool) -> None:
    """Fenced, it loses its partitions without an id; the next time it is its new id that breaks off."""
    trace = two_members()
    at_s = 15 if is_removed_first else 10
    trace.lose(at_s, "a", -1, "t-0", member_id="")
    trace.remove(25 - at_s, "a", cause="session-expired")
    trace.rows.sort(key=lambda row: row[0])
    trace.start(20, "a", member_id="a-2")
    trace.round(22, 2, {"a": ("t-0",)})
    trace.lose(30, "a", -1, "t-0", member_id="")
    trace.end(31)
    assert costs(trace)[2] == 2


def test_crashes_of_one_instant_are_one() -> None:
    trace = two_members()
    trace.crash(10, "a", 1, "t-0")
    trace.crash(10, "b", 1, "t-1")
    trace.end(20)
    assert costs(trace) == (0, 0, 1, 20, 0)


def test_members_that_are_added_are_neither() -> None:
    trace = two_members()
    trace.crash(5, "a", 1, "t-0")
    trace.take(6, "b", 2, "t-0")
    trace.step(10, "add", None, "1 more processes are started")
    trace.start(11, "c")
    trace.revoke(12, "b", 2, "t-0", "t-1")
    trace.round(14, 3, {"b": ("t-0",), "c": ("t-1",)})
    trace.add(20, Source.WORLD, world_events.PartitionsCreated("g", ("t",), ("t-2",)))
    trace.take(23, "c", 3, "t-2")
    trace.end(30)
    assert costs(trace) == (0, 0, 1, 1, 2 + 2 + 3)


def test_partitions_that_are_added_are_neither() -> None:
    trace = two_members()
    trace.crash(5, "a", 1, "t-0")
    trace.take(6, "b", 2, "t-0")
    trace.add(20, Source.WORLD, world_events.PartitionsCreated("g", ("t",), ("t-2",)))
    trace.revoke(21, "b", 2, "t-1")
    trace.end(22)
    assert costs(trace)[2:] == (1, 1, 1 + 2)


def test_a_group_that_its_coordinator_loses_is_neither() -> None:
    trace = two_members()
    trace.step(5, "stop", "c", "SIGTERM")
    trace.remove(10, "a", cause="unloaded")
    trace.remove(10, "b", cause="unloaded")
    trace.lose(11, "a", 1, "t-0")
    trace.start(12, "b", member_id="b-2")
    trace.revoke(12, "b", 1, "t-1")
    trace.end(20)
    assert costs(trace) == (1, 0, 0, 0, 9 + 8)


def test_a_member_that_fails_breaks_off() -> None:
    trace = two_members()
    trace.add(10, Source.MEMBER, member_events.MemberFailed("g", "c", "", "GROUP_MAX_SIZE_REACHED"))
    trace.end(20)
    assert costs(trace)[2] == 1


def test_a_poll_timeout_is_counted_and_breaks_off() -> None:
    trace = two_members()
    trace.rejoin(10, "a", "poll-timeout")
    trace.remove(10, "a", cause="left")
    trace.rejoin(11, "b", "group-rebalancing")
    trace.lose(15, "a", 1, "t-0")
    trace.end(20)
    assert costs(trace) == (0, 0, 1, 5, 0)
    assert trace.figures().max_poll_interval_exceeded == 1


def test_an_id_that_a_static_member_was_given_belongs_to_its_process_like_the_first() -> None:
    """The process stops without a LeaveGroup. Its id expires while the next process has not joined yet."""
    trace = two_members()
    trace.add(5, Source.COORDINATOR, events.MemberReplaced("g", "a", "a-2", "a-id", "i", 1))
    trace.step(10, "stop", "a", "SIGTERM")
    trace.revoke(10, "a", 1, "t-0", cause="close")
    trace.add(50, Source.MEMBER, member_events.MemberStarted("g", "a", "i", ("t",)))
    trace.add(55, Source.COORDINATOR, events.MemberRemoved("g", "a", "a-2", "i", 1, "session-expired"))
    trace.round(57, 2, {"b": ("t-0", "t-1")})
    trace.end(60)
    assert costs(trace) == (1, 47, 0, 0, 0)


def imported_members() -> Trace:
    trace = Trace()
    trace.add(0, Source.WORLD, GroupImported("g", "members", "{}"))
    trace.start(1, "a")
    trace.start(1, "b")
    trace.round(1, 1, {"a": ("t-0",), "b": ("t-1",)})
    return trace


@pytest.mark.parametrize("owned", ["t-0", ""])
def test_a_stop_of_which_the_coordinators_log_says_first_is_no_crash(owned: str) -> None:
    """Two clocks, or two lines of one millisecond. Which stops are one deployment, no log says."""
    trace = imported_members()
    trace.remove(10, "a", cause="left")
    trace.remove(10, "b", cause="left")
    if owned:
        trace.revoke(10.001, "a", 1, "t-0", cause="close")
    trace.add(10.002, Source.MEMBER, member_events.MemberClosed("g", "a", "a-id", "left"))
    figures = trace.ended(20)
    assert (figures.crashes, figures.deploys, figures.cost_per_deploy_partition_seconds) == (1, None, None)
    assert figures.deploy_unowned_partition_seconds == pytest.approx(9.999 if owned else 0)


def test_of_the_members_that_come_in_an_import_one_takes_the_place_of_one_that_ended() -> None:
    trace = imported_members()
    trace.crash(10, "a", 1, "t-0")
    trace.take(11, "b", 1, "t-0")
    for at_s, name in ((20, "c"), (30, "d")):
        trace.start(at_s, name)
        trace.revoke(at_s + 1, "b", 1, "t-1")
        trace.take(at_s + 2, "b", 1, "t-1")
    figures = trace.ended(40)
    assert (figures.unowned_partition_seconds, figures.crash_unowned_partition_seconds) == (3, 2)


def test_a_thread_that_owns_nothing_and_closes_without_a_word_is_no_crash() -> None:
    """Its instance is back before its session ends; no row of partitions says that it closed."""
    trace = Trace()
    names = ("app-StreamThread-1", "app-StreamThread-2")
    trace.scenario("t-0")
    for name in names:
        trace.start(1, name)
    trace.round(1, 1, {names[0]: ("t-0",), names[1]: ()})
    trace.step(10, "rolling-restart", "app", "SIGTERM")
    trace.revoke(11, names[0], 1, "t-0", cause="close")
    for name in names:
        closed = member_events.MemberClosed(trace.group, name, f"{name}-id", "silent")
        trace.add(11, Source.MEMBER, closed)
    for name in names:
        trace.start(15, name, member_id=f"{name}-2")
    for name in names:
        trace.remove(55, name, cause="session-expired")
    assert trace.ended(60).crashes == 0
