"""An operation breaks off: its group fails alone, loudly, and its members come back."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from groupstorm.coordinator import coordinator, deletions
from groupstorm.coordinator.classic import joins, moving, rebalances, syncs
from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.faults import CoordinatorFault
from groupstorm.coordinator.messages import CommittedOffset, Heartbeat, HeartbeatResponse, OffsetCommit
from groupstorm.coordinator.records import AppendCause, GroupMetadataRecord
from groupstorm.trace.events import coordinator as events
from tests.coordinator.world import World, no_delay

TWICE = (("range", b""), ("range", b""))


class Defect(Exception):
    """What no code of the coordinator expects."""


def _broken(*_: object, **__: object) -> Any:
    raise Defect("out of order")


def _failed(world: World) -> list[tuple[str, str]]:
    return [(event.group, event.detail) for event in world.of(events.OperationFailed)]


def test_a_defect_in_a_timer_answers_the_parked_and_empties_the_group(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(CoordinatorConfig())
    tokens = [world.join(), world.join(instance="i", version=5)]
    monkeypatch.setattr(rebalances, "_next_generation", _broken)
    with caplog.at_level(logging.ERROR):
        world.advance(6_000)
    assert [world.error(token) for token in tokens] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert (world.state, list(world.group.members)) == ("Empty", [])
    assert _failed(world) == [("g", "Defect: out of order")]
    assert "Defect: out of order" in caplog.text, "the traceback is logged"
    assert {(event.member_id, event.cause) for event in world.of(events.MemberRemoved)} == {
        ("m1", "failed"),
        ("m2", "failed"),
    }
    assert world.of(events.GroupStateChanged)[-1][1:5] == ("PreparingRebalance", "Empty", 0, "failed")
    assert world.coordinator.next_deadline() is None, "no timer of the group is left"


def test_the_members_of_a_failed_group_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(no_delay())
    world.stable()
    world.commit("m1", generation=1, offset=7)
    with monkeypatch.context() as patched:
        patched.setattr(rebalances, "hand_out", _broken)
        patched.setattr(syncs, "hand_out", _broken)
        world.join("m1")
        world.join("m2")
        follower = world.sync("m2")
        leader = world.sync("m1", {"m1": b"plan"})
    assert world.error(follower) is Error.COORDINATOR_NOT_AVAILABLE
    assert world.error(leader) is Error.COORDINATOR_NOT_AVAILABLE
    assert (world.state, world.group.generation, world.committed()) == ("Empty", 2, 7)
    assert world.heartbeat("m1") is Error.UNKNOWN_MEMBER_ID
    assert world.error(world.join("m1")) is Error.UNKNOWN_MEMBER_ID
    joined = world.join()
    world.advance(0)
    assert world.joined(joined).generation == 3
    world.complete()


def test_other_groups_go_on_at_the_same_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(CoordinatorConfig())
    close = rebalances._next_generation

    def breaks_in_one(shard: Any, group: Any, *more: Any) -> None:
        if group.name == "bad":
            raise Defect(group.name)
        close(shard, group, *more)

    monkeypatch.setattr(rebalances, "_next_generation", breaks_in_one)
    tokens = [world.join(group=group) for group in ("a", "bad", "b")]
    world.advance(3_000)
    assert [world.error(token) for token in tokens] == [
        Error.NONE,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NONE,
    ]
    assert _failed(world) == [("bad", "Defect: bad")]
    world.advance(60_000)
    assert [event.group for event in world.of(events.MemberRemoved)] == ["bad", "a", "b"], (
        "their sessions end as ever"
    )


def test_a_defect_in_a_request_is_its_own_error_and_a_retry_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    world.stable()
    parked = world.join("m1")
    monkeypatch.setattr(joins, "rebalance_or_complete", _broken)
    culprit = world.join("m2")
    assert world.error(culprit) is Error.UNKNOWN_SERVER_ERROR
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    assert world.state == "Empty"


def test_a_defect_in_a_sync_is_its_own_error_and_a_retry_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    world.stable()
    world.join("m1")
    world.join("m2")
    parked = world.sync("m2")
    monkeypatch.setattr(syncs, "_validate", _broken)
    culprit = world.sync("m1", {"m1": b"plan"})
    assert world.error(culprit) is Error.UNKNOWN_SERVER_ERROR
    assert world.error(parked) is Error.COORDINATOR_NOT_AVAILABLE
    answered = world.of(events.SyncAnswered)[-2:]
    assert [(event.member_id, event.generation, event.error) for event in answered] == [
        ("m1", 2, "UNKNOWN_SERVER_ERROR"),
        ("m2", 2, "COORDINATOR_NOT_AVAILABLE"),
    ]
    assert world.state == "Empty"


def test_a_defect_in_the_first_request_of_a_group_leaves_an_empty_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    monkeypatch.setattr(joins, "_add", _broken)
    assert world.error(world.join()) is Error.UNKNOWN_SERVER_ERROR
    assert (world.state, world.describe().state) == ("Empty", "Empty")


def test_an_answer_that_waits_for_the_write_is_given_although_its_completion_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    world.stable()
    world.append_delay_ms = 10
    monkeypatch.setattr(syncs, "hand_out", _broken)
    world.join("m1")
    world.join("m2")
    world.sync("m1")
    offsets = {"t": {0: CommittedOffset(1)}}
    waits = world.send(OffsetCommit("g", "m1", None, 1, offsets, 9))
    world.advance(10)
    assert waits in world.replies
    assert _failed(world) == [("g", "Defect: out of order")]
    assert world.appended[-1][1] is AppendCause.EMPTY_GROUP, "the failed group is written empty"
    world.advance(10)
    assert world.state == "Empty"


def test_the_event_of_a_failure_names_the_generation_and_the_member_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    world.stable()
    monkeypatch.setattr(joins, "_check", _broken)
    world.join("m2")
    world.join("m9", group="none")
    assert world.of(events.OperationFailed) == [
        ("g", "m2", 1, "Defect: out of order"),
        ("none", "m9", -1, "Defect: out of order"),
    ]


def test_a_failed_group_is_written_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke it may be in its record: a restart must not bring that back."""
    world = World(no_delay())
    world.stable()
    with monkeypatch.context() as patched:
        patched.setattr(rebalances, "_next_generation", _broken)
        world.join("m1")
        world.join("m2")
    assert world.appended[-1] == (
        [GroupMetadataRecord("g", 1, "consumer", None, None, 0, (), 0)],
        AppendCause.EMPTY_GROUP,
    )
    other = world.successor()
    assert (other.state, other.group.generation) == ("Empty", 1)


def test_a_group_that_breaks_while_it_is_loaded_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(no_delay())
    for group in ("a", "b"):
        world.join(group=group)
        world.join(group=group)
        world.advance(0)
        known = world.coordinator.group(group)
        assert known is not None
        for member in sorted(known.members, key=lambda member: member == known.leader):
            world.sync(member, group=group)
    monkeypatch.setattr(moving, "prepare_rebalance", _broken)
    other = world.successor(max_size=1)
    assert sorted(_failed(other)) == [("a", "Defect: out of order"), ("b", "Defect: out of order")]
    assert len(other.coordinator.groups) == 2


def test_offsets_of_other_groups_expire_although_one_group_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(no_delay(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=10_000))
    world.take(world.coordinator.load((), 0))
    for group in ("a", "bad", "b"):
        world.commit(group=group)
    over = deletions._is_over

    def breaks_in_one(shard: Any, stored: Any, base_ms: int) -> bool:
        if stored.committed.offset == 13:
            raise Defect("thirteen")
        return over(shard, stored, base_ms)

    world.commit(group="bad", offset=13)
    monkeypatch.setattr(deletions, "_is_over", breaks_in_one)
    world.advance(10_000)
    assert world.coordinator.groups == ["bad"]
    assert world.committed("bad") == 13
    assert _failed(world) == [("bad", "Defect: thirteen")]
    assert world.coordinator.next_deadline() == 20_000, "the next expiration"


@pytest.mark.parametrize("compatibility", Compatibility)
def test_a_fault_of_kafkas_fails_a_group_that_would_wait_for_ever(compatibility: Compatibility) -> None:
    """Kafka 4.3.1 leaves the group in its round for ever."""
    world = World(no_delay(compatibility=compatibility))
    token = world.join(protocols=TWICE)
    world.advance(0)
    assert "supports none" in _failed(world)[0][1]
    if compatibility is Compatibility.KAFKA_4_3_1:
        assert (world.error(token), world.state) == (None, "PreparingRebalance")
    else:
        assert (world.error(token), world.state) == (Error.COORDINATOR_NOT_AVAILABLE, "Empty")


def test_a_fault_of_kafkas_that_harms_nobody_fails_only_its_request() -> None:
    world = World(no_delay())
    world.stable()
    world.join(version=4)
    assert world.error(world.join("m3", "i", version=5)) is Error.UNKNOWN_SERVER_ERROR
    assert len(_failed(world)) == 1
    token = world.send(Heartbeat("g", "m1", None, 1, 4))
    assert world.replies[token] == HeartbeatResponse(Error.NONE)


def _refused(*_: object, **__: object) -> Any:
    raise CoordinatorFault("refused")


def test_a_fault_of_kafkas_leaves_a_group_that_waits_for_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer ends the wait for SyncGroups, and a write the wait for the plan."""
    world = World(no_delay())
    world.stable()
    world.join("m1")
    world.join("m2")
    with monkeypatch.context() as patched:
        patched.setattr(joins, "_check", _refused)
        assert world.error(world.join("m9")) is Error.UNKNOWN_SERVER_ERROR
        assert world.state == "CompletingRebalance", "the timer of the sync phase runs"
        world.append_delay_ms = 50
        follower, leader = world.sync("m2"), world.sync("m1", {"m1": b"plan"})
        assert world.error(world.join("m9")) is Error.UNKNOWN_SERVER_ERROR
        assert world.state == "CompletingRebalance", "the plan is being written"
    world.advance(50)
    assert (world.error(leader), world.error(follower), world.state) == (Error.NONE, Error.NONE, "Stable")
    with monkeypatch.context() as patched:
        patched.setattr(joins, "_check", _refused)
        assert world.error(world.join("m9")) is Error.UNKNOWN_SERVER_ERROR
    assert (world.state, list(world.group.members)) == ("Stable", ["m1", "m2"])


@pytest.mark.parametrize("compatibility", Compatibility)
def test_a_fault_of_kafkas_fails_a_group_whose_wait_for_plans_nothing_ends(
    monkeypatch: pytest.MonkeyPatch, compatibility: Compatibility
) -> None:
    """The timer of the sync phase has fired, and no plan is being written."""
    world = World(no_delay(compatibility=compatibility))
    world.stable(rebalance=5_000)
    world.join("m1", rebalance=5_000)
    world.join("m2", rebalance=5_000)
    parked = world.sync("m2")
    monkeypatch.setattr(coordinator, "on_sync_timer", _refused)
    world.advance(5_000)
    assert _failed(world) == [("g", "refused")]
    if compatibility is Compatibility.KAFKA_4_3_1:
        assert (world.error(parked), world.state) == (None, "CompletingRebalance")
    else:
        assert (world.error(parked), world.state) == (Error.COORDINATOR_NOT_AVAILABLE, "Empty")


def test_the_ids_that_a_failed_group_has_given_out_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(no_delay())
    world.stable()
    world.join(version=4)
    assert list(world.group.pending_members) == ["m3"]
    monkeypatch.setattr(joins, "rebalance_or_complete", _broken)
    world.join("m1")
    gone = [(event.member_id, event.cause) for event in world.of(events.PendingMemberRemoved)]
    assert gone == [("m3", "failed")]
    assert world.error(world.join("m3", version=4)) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("cause", "stays"), [("fault", "Stable"), ("defect", "Empty")])
def test_a_fault_of_kafka_itself_leaves_a_group_that_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, cause: str, stays: str
) -> None:
    def breaks(*_: object, **__: object) -> Any:
        raise CoordinatorFault("planned") if cause == "fault" else Defect("planned")

    world = World(no_delay())
    world.stable()
    monkeypatch.setattr(coordinator, "on_session_timer", breaks)
    world.advance(60_000)
    assert world.state == stays
    assert world.of(events.OperationFailed)[0].member_id == "m1", "the member whose session ended"
