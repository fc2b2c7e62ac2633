"""Which timer is set when, for how long, and what it does: row by row of Kafka's rules."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.simulated import IN_TOUCH
from groupstorm.coordinator.timers import TimerKind
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay


def _session(world: World, member: str) -> int | None:
    """When the member's session ends, from now on in ms."""
    due_ms = world.coordinator._shard.timers.deadline_of(TimerKind.SESSION, "g", member)
    return None if due_ms is None else due_ms - world.now_ms


def _removed(world: World) -> list[tuple[str, str]]:
    return [(event.member_id, event.cause) for event in world.of(events.MemberRemoved)]


def test_pending_id_lives_for_the_requests_session_timeout() -> None:
    world = World(no_delay())
    world.join(version=4, session=7_000)
    world.advance(6_999)
    assert "m1" in world.group.pending_members
    world.advance(1)
    assert not world.group.pending_members
    assert [event.cause for event in world.of(events.PendingMemberRemoved)] == ["session-expired"]


def test_pending_id_holds_the_round_open_until_it_expires() -> None:
    world = World(no_delay())
    world.stable()
    world.join(version=4, session=6_000)
    first, second = world.join("m1"), world.join("m2")
    assert world.error(first) is None
    world.advance(6_000)
    assert world.error(first) is world.error(second) is Error.NONE


def test_new_member_is_parked_for_five_minutes_at_most() -> None:
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS))
    token = world.join(rebalance=4 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    world.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert world.error(token) is None
    world.advance(1)
    answer = world.joined(token)
    assert (answer.error, answer.member_id) == (Error.UNKNOWN_MEMBER_ID, "")
    assert _removed(world) == [("m1", "new-member-timeout")]


def test_a_static_member_that_came_back_is_not_new() -> None:
    """As Kafka 4.3.1 was seen to do: the five minutes do not count for the one that replaces another."""
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS))
    world.join(instance="i1", rebalance=4 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    token = world.join(instance="i1", rebalance=4 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    world.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 1)
    assert world.error(token) is None
    assert "m2" in world.group.members


def test_a_parked_member_needs_no_heartbeat_but_the_absent_ones_do() -> None:
    world = World(no_delay())
    world.stable()
    token = world.join("m1", rebalance=60_000)
    world.advance(9_999)
    assert "m2" in world.group.members
    world.advance(1)
    assert _removed(world) == [("m2", "session-expired")]
    assert world.error(token) is Error.NONE, "nobody is missing any more: the round closes"


@pytest.mark.parametrize(
    ("what", "restarts"),
    [
        ("heartbeat", True),
        ("commit", True),
        ("sync answered from a stable group", False),
        ("heartbeat during a round", True),
        ("commit during a round", True),
        ("a join that is refused", False),
    ],
)
def test_what_restarts_a_session(what: str, restarts: bool) -> None:
    world = World(no_delay())
    world.stable()
    if what.endswith("during a round"):
        world.join("m1")
    world.advance(4_000)
    match what.partition(" ")[0]:
        case "heartbeat":
            world.heartbeat("m2")
        case "commit":
            assert world.commit("m2", generation=world.group.generation) is Error.NONE
        case "sync":
            assert world.error(world.sync("m2")) is Error.NONE
        case _:
            assert world.error(world.join("m2", kind="connect")) is Error.INCONSISTENT_GROUP_PROTOCOL
    assert _session(world, "m2") == (10_000 if restarts else 6_000)


def test_join_and_sync_answers_restart_the_session() -> None:
    world = World(no_delay())
    world.join(session=7_000)
    assert _session(world, "m1") == NEW_MEMBER_JOIN_TIMEOUT_MS
    world.advance(0)
    assert _session(world, "m1") == 7_000
    world.join(session=8_000)
    world.join("m1", session=9_000)
    assert (_session(world, "m1"), _session(world, "m2")) == (9_000, 8_000)
    world.sync("m2")
    world.advance(3_000)
    world.sync("m1")
    assert (_session(world, "m1"), _session(world, "m2")) == (9_000, 8_000)


def test_the_round_is_open_for_the_longest_rebalance_timeout_from_its_beginning() -> None:
    world = World(no_delay())
    world.stable(rebalance=20_000)
    first = world.join("m1", rebalance=20_000)
    for second in range(20):
        assert world.error(first) is None, f"at {second} s"
        world.heartbeat("m2")
        world.join(version=3, rebalance=90_000)  # joining late does not prolong it
        world.advance(1_000)
    assert world.error(first) is Error.NONE
    assert ("m2", "rebalance-timeout") in _removed(world)


def test_static_members_that_do_not_come_keep_their_place() -> None:
    world = World(no_delay())
    world.join(instance="i1", session=10_000, rebalance=6_000)
    world.join(instance="i2", session=30_000, rebalance=6_000)
    world.advance(0)
    world.join("m1", "i1", session=10_000, rebalance=6_000)
    world.complete()
    token = world.join("m1", "i1", session=10_000, rebalance=6_000)
    world.advance(6_000)
    assert world.error(token) is Error.NONE
    assert set(world.group.members) == {"m1", "m2"}
    assert _removed(world) == []


def test_where_nobody_comes_the_round_waits_for_sessions_to_end() -> None:
    """Only static members are left and none has joined (KAFKA-8220's leader rule has nobody to elect)."""
    world = World(no_delay())
    world.join(instance="i1", session=20_000, rebalance=6_000)
    world.advance(0)
    world.complete()
    generation = world.group.generation
    dynamic = world.join(version=4, session=6_000, rebalance=6_000)
    assert world.joined(dynamic).error is Error.MEMBER_ID_REQUIRED
    world.leave("m2")  # a pending id that leaves a stable group brings a rebalance
    assert world.state == "PreparingRebalance"
    world.advance(6_000)
    world.advance(6_000)
    assert (world.state, world.group.generation) == ("PreparingRebalance", generation)
    world.advance(8_000)
    assert (world.state, world.group.generation) == ("Empty", generation + 1)


def test_zero_rebalance_timeout_does_not_set_its_timer_for_ever_at_one_instant() -> None:
    world = World(no_delay())
    world.join(instance="i1", rebalance=0)
    world.advance(0)
    assert _removed(world) == [("m1", "sync-timeout")], "there was no time at all to sync"
    world.join(instance="i1", rebalance=0)
    world.coordinator.fire_one(world.now_ms)
    world.complete()
    world.join(version=4)
    world.leave("m3")
    assert world.state == "PreparingRebalance"
    world.advance(10_000)
    assert world.state == "Empty"


def test_members_that_do_not_sync_go_static_ones_too() -> None:
    world = World(no_delay())
    world.join(instance="i1", rebalance=8_000)
    world.join(rebalance=8_000)
    world.advance(0)
    world.join("m1", "i1", rebalance=8_000)
    world.sync("m2")
    for _ in range(8):
        world.heartbeat("m1")
        world.advance(1_000)
    assert _removed(world) == [("m1", "sync-timeout")]
    assert world.state == "PreparingRebalance"
    assert not world.group.static_members


def test_a_sync_from_the_last_one_missing_ends_the_sync_timer_in_a_stable_group_too() -> None:
    world = World(no_delay())
    world.stable(rebalance=8_000)
    world.join("m1", rebalance=8_000)
    world.join("m2", rebalance=8_000)
    world.sync("m1")
    assert world.state == "Stable"
    world.sync("m2")
    for _ in range(10):
        world.heartbeat("m1")
        world.heartbeat("m2")
        world.advance(1_000)
    assert _removed(world) == []


@pytest.mark.parametrize(
    ("joins_at", "answered_at"),
    [
        ([0], 3_000),
        ([0, 2_999], 6_000),
        ([0, 2_000, 5_000], 9_000),
        ([0, 3_500], 3_000),  # the second comes when it is over: a rebalance, not an extension
        ([0, 2_000, 4_000, 7_000, 10_000], 10_000),  # at most the rebalance timeout
    ],
)
def test_initial_delay(joins_at: list[int], answered_at: int) -> None:
    """KIP-134; extended by new members, up to the rebalance timeout of the first (10 s)."""
    world = World()
    tokens = []
    for when_ms in joins_at:
        world.advance(when_ms - world.now_ms)
        tokens.append(world.join(rebalance=10_000))
    world.advance(10_000)
    assert world.answered_at_ms[tokens[0]] == answered_at


def test_extension_subtracts_what_has_elapsed() -> None:
    """Delay 4 s, rebalance timeout 10 s: 4 s, then min(4, 6) s, then min(4, 2) s."""
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=4_000))
    token = world.join(rebalance=10_000)
    for _ in range(3):
        world.advance(1_000)
        world.join(rebalance=10_000)
        world.advance(2_000)
    assert world.now_ms == 9_000
    assert [event.duration_us for event in world.of(events.InitialDelayExtended)] == [4_000_000, 2_000_000]
    world.advance(1_000)
    assert world.error(token) is Error.NONE


def test_leaving_does_not_end_the_initial_delay_but_an_expiry_does() -> None:
    """As Kafka 4.3.1 was seen to do: only the expiry of a session or of a pending id closes it early."""
    world = World(CoordinatorConfig(initial_rebalance_delay_ms=30_000))
    token = world.join()
    world.join()
    world.join(version=4, session=6_000)
    world.leave("m2")
    assert world.error(token) is None
    world.advance(6_000)
    assert world.error(token) is Error.NONE
    assert world.now_ms == 6_000


def test_last_contact_keeps_a_session_going() -> None:
    """Heartbeats that a storm does not deliver one by one."""
    heard = {"m1": 9_000}
    asked = []

    def last_contact(group: str, member: str, deadline_ms: int) -> int | None:
        asked.append((group, member, deadline_ms))
        return heard.pop(member, None)

    world = World(no_delay(), last_contact=last_contact)
    world.stable()
    world.advance(10_000)
    assert asked == [("g", "m1", 10_000), ("g", "m2", 10_000)]
    assert _removed(world) == [("m2", "session-expired")]
    world.advance(9_000)
    assert _removed(world)[-1] == ("m1", "session-expired")
    assert asked[-1] == ("g", "m1", 19_000)


def test_last_contact_that_is_old_news_does_not_keep_it() -> None:
    world = World(no_delay(), last_contact=lambda group, member, deadline_ms: deadline_ms - 10_001)
    world.stable(1)
    world.advance(10_000)
    assert _removed(world) == [("m1", "session-expired")]


def test_last_contact_of_the_same_deadline_moves_behind_its_equals() -> None:
    """Both end at one millisecond, but m1 was heard of after m2: m2 goes first."""
    heard = {"m1": 0}
    world = World(no_delay(), last_contact=lambda group, member, deadline_ms: heard.pop(member, None))
    world.stable()
    world.advance(10_000)
    assert _removed(world) == [("m2", "session-expired"), ("m1", "session-expired")]


def _removed_with_time(world: World, until_ms: int) -> list[tuple[int, str]]:
    """Advance second by second: who was removed, and in which second."""
    seen = []
    while world.now_ms < until_ms:
        before = len(_removed(world))
        world.advance(1_000)
        seen += [(world.now_ms, member) for member, _ in _removed(world)[before:]]
    return seen


def test_a_member_in_touch_is_not_asked_about_until_it_is_out_of_touch() -> None:
    asked = []

    def last_contact(group: str, member: str, deadline_ms: int) -> int | None:
        asked.append((member, deadline_ms))
        return IN_TOUCH if deadline_ms <= 10_000 else None

    world = World(no_delay(), last_contact=last_contact)
    world.stable(1)
    world.advance(100_000)
    assert asked == [("m1", 10_000)]
    world.coordinator.out_of_touch("g", "m1", 98_000, world.now_ms)
    assert _removed_with_time(world, 120_000) == [(108_000, "m1")]


def test_a_request_of_a_member_in_touch_starts_its_session_again() -> None:
    world = World(no_delay(), last_contact=lambda *_: IN_TOUCH if world.now_ms == 10_000 else None)
    world.stable(1)
    world.advance(50_000)
    world.heartbeat("m1")
    world.coordinator.out_of_touch("g", "m1", 49_000, world.now_ms)  # the heartbeat was later
    assert _removed_with_time(world, 70_000) == [(60_000, "m1")]


def test_being_out_of_touch_for_longer_than_a_session_ends_it_now() -> None:
    world = World(no_delay(), last_contact=lambda *_: IN_TOUCH if world.now_ms == 10_000 else None)
    world.stable(1)
    world.advance(50_000)
    world.coordinator.out_of_touch("g", "m1", 20_000, world.now_ms)
    world.coordinator.out_of_touch("g", "nobody", 20_000, world.now_ms)
    world.coordinator.out_of_touch("no group", "m1", 20_000, world.now_ms)
    world.advance(0)
    assert _removed(world) == [("m1", "session-expired")]


def test_a_session_that_is_ended_on_command_ends_as_by_its_timer() -> None:
    """Two members, one of which goes silent; in the other world it is told to expire at that time."""

    def one_alive(world: World) -> None:
        world.stable()
        world.advance(6_000)
        world.heartbeat("m2")

    by_timer, by_command = World(no_delay()), World(no_delay())
    one_alive(by_timer)
    by_timer.advance(4_000)
    one_alive(by_command)
    by_command.take(by_command.coordinator.expire_session("g", "m1", by_command.now_ms))
    assert _removed(by_command) == [("m1", "session-expired")]
    assert by_command.events == by_timer.events
    assert by_command.state == "PreparingRebalance"


def test_the_session_of_an_id_that_was_given_out_ends_on_command() -> None:
    world = World(no_delay())
    world.stable()
    world.join(version=4)
    world.take(world.coordinator.expire_session("g", "m3", world.now_ms))
    gone = [(event.member_id, event.cause) for event in world.of(events.PendingMemberRemoved)]
    assert gone == [("m3", "session-expired")]
    assert (_removed(world), world.state) == ([], "Stable")
    assert world.error(world.join("m3", version=4)) is Error.UNKNOWN_MEMBER_ID


def test_ending_the_session_of_nobody_changes_nothing() -> None:
    world = World(no_delay())
    world.stable()
    before = len(world.events)
    for group, member in (("g", "nobody"), ("none", "m1")):
        world.take(world.coordinator.expire_session(group, member, world.now_ms))
    assert len(world.events) == before
    assert _session(world, "m1") is not None


def test_a_parked_member_does_not_expire_on_command_either() -> None:
    world = World(no_delay())
    world.stable()
    parked = world.join("m1")
    world.take(world.coordinator.expire_session("g", "m1", world.now_ms))
    assert (_removed(world), world.error(parked)) == ([], None)
