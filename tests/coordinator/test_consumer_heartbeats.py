"""ConsumerGroupHeartbeat: what is refused, which epoch fences, what the answer holds
(GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid and below)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat
from groupstorm.coordinator.script.clients import topic_uuid
from groupstorm.trace.events import coordinator as events
from tests.coordinator.consumer_world import Group, group_state, held_partitions

T, U = topic_uuid("t"), topic_uuid("u")
_JOIN: dict[str, Any] = {"rebalance_timeout_ms": 10_000, "topics": ("t",), "owned": ()}


def ask(world: Group, member: str = "m", epoch: int = 0, **fields: Any) -> tuple[Error, str | None]:
    fields = {"group": "g", **(_JOIN if epoch == 0 else {}), **fields}
    name = fields.pop("group")
    answer = world.send(ConsumerGroupHeartbeat(name, member, epoch, **fields))
    return answer.error, answer.error_message


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("\t\x00 ", (Error.INVALID_REQUEST, "MemberId can't be empty.")),
        ("\u00a0", (Error.NONE, None)),
        ("!", (Error.NONE, None)),
    ],
)
def test_a_member_id_is_empty_if_javas_trim_leaves_nothing(
    member: str, answer: tuple[Error, str | None]
) -> None:
    """String.trim takes away control characters and no space beyond ASCII."""
    group = Group()
    assert ask(group, member) == answer
    assert group.driver.coordinator.groups == ([] if answer[1] else ["g"])


# epochs and ids


def revoking() -> Group:
    """a, at epoch 3 and before at 2, owns t-0 and t-1; b has the others."""
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    member = group.group.members["a"]
    assert (member.epoch, member.previous_epoch, member.assigned) == (3, 2, {T: {0: 2, 1: 2}})
    return group


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (3, None, Error.NONE),
        (0, (), Error.NONE),  # joins again
        (2, ((T, (0, 1)),), Error.NONE),  # it may have missed the answer with its epoch
        (2, (), Error.NONE),
        (2, None, Error.FENCED_MEMBER_EPOCH),
        (2, ((T, (0, 2)),), Error.FENCED_MEMBER_EPOCH),
        (2, ((U, (0,)),), Error.FENCED_MEMBER_EPOCH),
        (1, ((T, (0, 1)),), Error.FENCED_MEMBER_EPOCH),
        (4, ((T, (0, 1)),), Error.FENCED_MEMBER_EPOCH),
    ],
)
def test_what_an_epoch_fences(epoch: int, owned: Any, error: Error) -> None:
    group = revoking()
    before = group_state(group.group)
    found, message = ask(group, "a", epoch, owned=owned)
    assert found is error
    if error is not Error.NONE:
        which = "greater" if epoch > 3 else "smaller"
        assert message == (
            f"The consumer group member has a {which} member epoch ({epoch}) than the one known by the group"
            " coordinator (3). The member must abandon all its partitions and rejoin."
        )
        assert group_state(group.group) == before


# what the answer holds


@pytest.mark.parametrize(
    ("tells", "is_told"),
    [
        ({}, False),
        ({"owned": ((T, (0, 1)),)}, False),
        ({"owned": ((T, (0, 1)),), "topics": ("t",)}, False),
        ({"owned": ((T, (0, 1)),), "topics": ("t",), "rebalance_timeout_ms": 10_000}, True),
        ({"owned": ((T, (0, 1)),), "regex": "", "rebalance_timeout_ms": 10_000}, True),
        ({"owned": ((T, (0, 1)),), "rebalance_timeout_ms": 10_000}, False),
        ({"topics": ("t",), "rebalance_timeout_ms": 10_000}, False),
    ],
)
def test_a_member_that_tells_everything_is_told_everything(tells: dict[str, Any], is_told: bool) -> None:
    group = revoking()
    answer = group.send(ConsumerGroupHeartbeat("g", "a", 3, **tells))
    assert answer.assignment == ({T: (0, 1)} if is_told else None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 3, 5_000)


def test_a_heartbeat_changes_what_it_says_and_nothing_else() -> None:
    group = Group()
    group.join("a", rack="r1", assignor="range", rebalance=10_000, regex="u")
    group.beat("a")
    member = group.group.members["a"]
    assert (member.rack, member.assignor, member.rebalance_timeout_ms, member.topics, member.regex) == (
        "r1", "range", 10_000, frozenset({"t"}), "u",
    )  # fmt: skip
    group.beat("a", rack="r2", assignor="uniform", rebalance=20_000, topics=["u"], regex="")
    member = group.group.members["a"]
    assert (member.rack, member.assignor, member.rebalance_timeout_ms, member.topics, member.regex) == (
        "r2", "uniform", 20_000, frozenset({"u"}), "",
    )  # fmt: skip


# partitions that change hands


def test_a_dropped_topic_is_taken_away_at_once_without_a_new_target() -> None:
    group = Group(**{"group.consumer.assignment.interval.ms": 10_000})
    group.join("a", topics=["t", "u"])
    epoch = group.group.members["a"].epoch
    answer = group.beat("a", topics=["t"])
    assert (answer.member_epoch, answer.assignment) == (epoch, {T: (0, 1, 2, 3)})
    member = group.group.members["a"]
    assert (member.state, member.revoking) == ("UNREVOKED_PARTITIONS", {U: {0: 2, 1: 2}})
    group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert (group.group.members["a"].state, group.group.members["a"].revoking) == ("STABLE", {})
    assert held_partitions(group.group).keys() == {(T, number) for number in range(4)}


def test_a_regular_expression_that_matches_less_takes_its_topics_away_at_once() -> None:
    group = Group(**{"group.consumer.assignment.interval.ms": 10_000})
    group.join("b", topics=[], regex="t")
    group.advance(10_001)
    group.join("a", topics=[], regex="t|u")
    group.advance(10_001)
    group.settle()
    assert U in group.group.members["a"].assigned
    group.beat("a", regex="t")
    assert group.group.members["a"].assigned.keys() <= {T}


def test_a_member_that_subscribes_to_nothing_more_gives_everything_up() -> None:
    group = Group(**{"group.consumer.assignment.interval.ms": 10_000})
    group.join("a")
    assert group.beat("a", topics=[]).assignment == {}
    assert group.group.members["a"].revoking == {T: dict.fromkeys(range(4), 2)}
    assert group.beat("a", owned={}).assignment is None
    assert (group.group.members["a"].state, held_partitions(group.group)) == ("STABLE", {})


@pytest.mark.parametrize("says", [None, {"t": [0, 1, 2, 3]}, {"t": [2]}])
def test_partitions_are_handed_over_once_their_owner_says_that_it_has_none_of_them(says: Any) -> None:
    group = Group()
    group.join("a")
    assert group.join("b").assignment == {}
    assert group.beat("a", owned=None).assignment == {T: (0, 1)}
    assert group.group.members["a"].state == "UNREVOKED_PARTITIONS"
    assert group.beat("a", owned=says).member_epoch == 2, "it may still own them"
    assert group.beat("b").assignment is None
    assert group.group.members["b"].state == "UNRELEASED_PARTITIONS"
    assert group.beat("a", owned={"t": [0, 1]}).member_epoch == 3
    assert group.beat("b").assignment == {T: (2, 3)}
    assert {member.state for member in group.group.members.values()} == {"STABLE"}


@pytest.mark.parametrize(
    ("beats", "is_fenced"),
    [((9_999,), False), ((10_000,), True), ((5_000, 5_000), True), ((3_000, 8_000), True)],
)
def test_a_member_gives_partitions_up_within_its_rebalance_timeout(
    beats: tuple[int, ...], is_fenced: bool
) -> None:
    """Heartbeats that still own them do not prolong it."""
    group = Group()
    group.join("a", rebalance=10_000)
    group.join("b")
    group.beat("a", owned=None)
    for wait_ms in beats:
        group.advance(wait_ms)
        if "a" in group.group.members:
            group.beat("a", owned={"t": [0, 1, 2, 3]})
    assert ("a" not in group.group.members) == is_fenced
    if not is_fenced:
        group.beat("a", owned={"t": [0, 1]})
        group.advance(10_000)
        assert "a" in group.group.members, "it has given them up"


def test_a_member_that_reads_nothing_and_has_nothing_is_at_its_epoch() -> None:
    """CurrentAssignmentBuilder.updateCurrentAssignment: its previous epoch passes no more."""
    group = Group(**{"group.consumer.assignment.interval.ms": 10_000})
    group.join("a", topics=["none"])
    group.beat("a", topics=["neither"])
    assert group.group.members["a"].previous_epoch == 0
    group.beat("a", topics=[])
    assert (group.group.members["a"].previous_epoch, group.group.members["a"].epoch) == (2, 2)


@pytest.mark.parametrize("static", ["a", "b"])
def test_a_static_member_comes_back_to_the_partitions_that_it_had(static: str) -> None:
    """Also if the targets are computed anew when it returns."""
    group = Group()
    for member in ("a", "b"):
        group.join(member, instance=f"i-{member}")
    group.settle()
    before = {name: set(group.group.target(name)[T]) for name in ("a", "b")}
    group.driver.change_topics({"t": 8}, ())
    group.beat(static, epoch=-2, instance=f"i-{static}")
    group.join("back", instance=f"i-{static}")
    after = {name: set(target[T]) for name, target in group.group.targets.items()}
    after[static] = after.pop("back")
    assert {name: len(target) for name, target in after.items()} == {"a": 4, "b": 4}
    assert all(before[name] < after[name] for name in ("a", "b"))


def test_a_member_that_looks_at_new_partitions_keeps_its_old_ones() -> None:
    group = Group()
    group.join("a")
    group.join("b")
    group.settle()
    before = {name: set(group.group.target(name)[T]) for name in ("a", "b")}
    group.driver.change_topics({"t": 8}, ())
    for member in ("b", "a"):
        group.beat(member)
    assert all(before[name] < set(group.group.target(name)[T]) for name in ("a", "b"))


def test_a_member_that_leaves_for_a_while_has_its_session_and_not_its_rebalance_timeout() -> None:
    group = Group()
    group.join("a", instance="i", rebalance=10_000)
    group.join("b")
    group.beat("a", owned=None, instance="i")
    assert group.group.members["a"].state == "UNREVOKED_PARTITIONS"
    group.beat("a", epoch=-2, instance="i")
    group.advance(44_999)
    assert "a" in group.group.members
    group.advance(1)
    assert "a" not in group.group.members


def test_nothing_expires_of_a_member_that_could_not_be_written() -> None:
    group = Group()
    group.join("a")
    group.driver.append_error = Error.NOT_ENOUGH_REPLICAS
    group.join("b")
    group.driver.append_error = None
    group.advance(40_000)
    group.beat("a")
    group.advance(40_000)
    assert group.of(events.OperationFailed) == group.of(events.MemberRemoved) == []
