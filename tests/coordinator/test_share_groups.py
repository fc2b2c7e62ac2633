"""Share groups (KIP-932) beyond Kafka's recorded answers in `golden`: partitions are initialised, given, and
forgotten, records fail, bad heartbeats are refused, and random scripts keep the rules."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server import MemberSpec, ServerGroup, Target, TopicDescription, assign_simple
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    DeleteGroup,
    DeleteGroupResponse,
)
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import StatePartitions
from groupstorm.coordinator.share.messages import (
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.topics import Topic
from groupstorm.turns import at_once
from tests.coordinator.checked import CheckedCoordinator, check_loading, run_script
from tests.coordinator.share_group import BAR, FOO, Share
from tests.oracle.scripts.share_scripts import random_share_script


def test_a_lost_answer_is_asked_for_again_after_the_retry_interval() -> None:
    share = Share()
    share.persister.error = None
    share.beat("a", 0, "foo")
    share.now_ms += 29_999
    share.beat("a", 2)
    assert len(share.persister.initialized) == 1
    share.now_ms += 1
    share.beat("a", 2)
    assert share.persister.initialized[1] == Initialization(2, {FOO: {0: 0, 1: 0}})


def test_the_persister_is_not_asked_if_the_records_of_the_heartbeat_fail() -> None:
    share = Share()
    share.append_error = Error.NOT_LEADER_OR_FOLLOWER
    assert share.beat("a", 0, "foo").error is Error.NOT_COORDINATOR
    assert share.persister.initialized == []
    assert share.coordinator.groups == []


def test_a_member_whose_write_fails_is_the_last_of_its_slot() -> None:
    """Kafka's tables take changed entries out before they put the old ones back; assignors see the order."""
    share = Share()
    for one in ("member-11.0", "member-6.1"):
        share.beat(one, 0, "foo")
    assert share.group.members.keys() == ["member-6.1", "member-11.0"]
    share.append_error = Error.MESSAGE_TOO_LARGE
    assert share.beat("member-11.0", 2, "bar").error is Error.UNKNOWN_SERVER_ERROR
    assert share.group.members.keys() == ["member-11.0", "member-6.1"]


def test_a_deleted_topic_has_no_share_partitions_any_more() -> None:
    share = Share()
    share.beat("a", 0, "foo", "bar")
    share.coordinator.update_topics({}, ["foo"], share.now_ms)
    known = share.group.state_partitions
    assert known is not None
    assert known.initialized == {BAR: frozenset({0})}
    written = len(share.records)
    share.coordinator.update_topics({}, ["nowhere"], share.now_ms)
    assert len(share.records) == written


def test_a_group_is_deleted_after_the_state_of_its_partitions() -> None:
    share = Share()
    share.beat("a", 0, "foo")
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.NON_EMPTY_GROUP)
    share.beat("a", -1)
    share.persister.error = Error.REQUEST_TIMED_OUT
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.REQUEST_TIMED_OUT)
    assert share.group.state_partitions == StatePartitions(deleting=frozenset({FOO}))
    share.persister.error = None
    assert share.ask(DeleteGroup("g")) is None
    share.persister.error = Error.NONE
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.NONE)
    assert share.persister.deleted == [("g", {FOO: [0, 1]})] * 3
    assert share.coordinator.groups == []
    assert share.coordinator.snapshot() == []


_WRONG: list[tuple[ShareGroupHeartbeat, Error, str]] = [
    (ShareGroupHeartbeat("g", " ", 2), Error.INVALID_REQUEST, "MemberId can't be empty."),
    (ShareGroupHeartbeat("", "a", 2), Error.INVALID_REQUEST, "GroupId can't be empty."),
    (ShareGroupHeartbeat("g", "a", 2, rack="\t"), Error.INVALID_REQUEST, "RackId can't be empty."),
    (ShareGroupHeartbeat("g", "a", 0, topics=()), Error.INVALID_REQUEST,
     "SubscribedTopicNames must be set in first request."),
    (ShareGroupHeartbeat("g", "a", -2), Error.INVALID_REQUEST, "MemberEpoch is invalid."),
    (ShareGroupHeartbeat("h", "a", 2), Error.GROUP_ID_NOT_FOUND, "Share group h not found."),
    (ShareGroupHeartbeat("h", "a", -1), Error.GROUP_ID_NOT_FOUND, "Group h not found."),
    (ShareGroupHeartbeat("g", "b", -1), Error.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."),
    (ShareGroupHeartbeat("g", "b", 2), Error.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."),
    (ShareGroupHeartbeat("g", "a", 9), Error.FENCED_MEMBER_EPOCH,
     "The share group member has a greater member epoch (9) than the one known by the group coordinator"
     " (3). The member must abandon all its partitions and rejoin."),
    (ShareGroupHeartbeat("g", "a", 1), Error.FENCED_MEMBER_EPOCH,
     "The share group member has a smaller member epoch (1) than the one known by the group coordinator"
     " (3), and it does not match the previous member epoch (2). The member must abandon all its"
     " partitions and rejoin."),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "error", "message"), _WRONG, ids=lambda one: str(one)[:40])
def test_a_refused_heartbeat_says_why_and_harms_nobody(
    request_: ShareGroupHeartbeat, error: Error, message: str
) -> None:
    share = Share()
    share.beat("a", 0, "foo")
    share.beat("a", 2)
    before, written = repr(share.group), len(share.records)
    assert share.ask(request_) == ShareGroupHeartbeatResponse(error, error_message=message)
    assert (repr(share.group), len(share.records)) == (before, written)


def test_partitions_that_are_no_longer_assignable_may_leave_nobody_with_room() -> None:
    """Kafka's own defect: foo-1 and foo-2 have no state any more, but count for a and b, which have all that
    they shall have, one partition. foo-1 shall have three members: c is the second, and there is no third."""
    held: dict[str, Target] = {"a": {FOO: [1]}, "b": {FOO: [2]}, "c": {}}
    specs = [MemberSpec(["foo"], target) for target in held.values()]
    group = ServerGroup({"foo": TopicDescription(FOO, 3)}, [*held], specs, MapOrder.JAVA_HASH)
    with pytest.raises(AssignmentRefused, match="NoSuchElementException"):
        at_once(assign_simple(group, {FOO: frozenset([0])}))


@pytest.mark.parametrize(
    ("kafka", "is_left"), [(Compatibility.KAFKA_4_4_0, True), (Compatibility.REPAIRED_4_4_0, False)]
)
def test_a_join_that_breaks_the_assignor_leaves_a_member_behind_in_kafka_alone(
    kafka: Compatibility, is_left: bool
) -> None:
    """A topic that is made anew under its old id, as only scripts do, is in targets but not assignable."""
    share = Share(kafka)
    for name in ("a", "b", "a", "b"):
        share.beat(name, 0, "foo", "bar")
    share.persister.error = None
    share.coordinator.update_topics({}, ["foo"], share.now_ms)
    share.coordinator.update_topics({"foo": Topic(FOO, 2)}, (), share.now_ms)
    assert share.beat("c", 0, "foo", "bar").error is Error.UNKNOWN_SERVER_ERROR
    assert ("c" in share.group.members) is is_left


class _Checked(CheckedCoordinator):
    """No target and no member has what is not initialised; two members may have a partition."""

    def check_group(self, group: Any) -> None:
        if not isinstance(group, ShareGroup):
            return
        partitions = group.state_partitions or StatePartitions()
        for topic in partitions.initialized:
            assert not partitions.initialized[topic] & partitions.initializing.get(topic, frozenset())
        assert group.epoch >= group.assignment_epoch
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            named = {name for topic in member.assigned if (name := self.topic_name(topic)) is not None}
            assert named <= member.topics or member.epoch < group.assignment_epoch
        counted = Counter(name for member in group.members.values() for name in member.topics)
        assert {name: (count, 0) for name, count in counted.items()} == group.subscribed


@pytest.mark.parametrize("kafka", [Compatibility.KAFKA_4_4_0, Compatibility.KAFKA_4_3_1])
def test_random_scripts_keep_the_rules_and_give_all_initialised_partitions(kafka: Compatibility) -> None:
    complete = shared = 0
    for number in range(30):
        for event in run_script(random_share_script(1, number), kafka, coordinator=_Checked):
            group = event["groups"].get("g") if event["kind"] == "state" else None
            if not group or "initialized" not in group or group["epoch"] != group["assignment_epoch"]:
                continue
            targets = [(topic, p) for m in group["members"] for topic, ps in m["target"].items() for p in ps]
            wanted = {topic for member in group["members"] for topic in member["topics"]}
            initialized = {
                (topic, p) for topic, ps in group["initialized"].items() if topic in wanted for p in ps
            }
            complete += bool(initialized) and initialized <= set(targets)
            shared += len(set(targets)) < len(targets)
    assert complete > 150
    assert shared > 50


def test_another_coordinator_loads_the_group_that_was_written() -> None:
    scripts = (random_share_script(1, number) for number in range(12))
    facts = ("epoch", "metadata_hash", "assignment_epoch", "state_partitions", "subscribed")
    check_loading(scripts, ShareGroup, *facts)


@pytest.mark.parametrize(
    "step",
    [
        {"topics": "foo"},
        {"topics": [1]},
        {"epoch": "x"},
        {"rack": 5},
        {"version": 0},
        {"persister": "sometimes"},
        {"op": "describe_share", "group": 5},
    ],
)
def test_a_step_that_is_no_request_is_invalid_and_the_script_goes_on(step: dict[str, Any]) -> None:
    join = {"op": "shb", "epoch": 0, "member": "a", "topics": ["foo"]}
    script = {"id": "x", "config": {}, "steps": [{**join, **step}, join]}
    events = run_script(script)
    assert [event["kind"] for event in events if event["kind"] != "state"] == ["invalid", "shb"]


def test_groups_of_one_deletion_wait_for_the_persister_of_a_share_group() -> None:
    """GroupCoordinatorService.deleteGroups: what Kafka 4.4.0 did with this script, too."""
    shb, chb = {"op": "shb", "member": "a", "topics": ["foo"]}, {"op": "chb", "member": "b", "group": "h"}
    steps: list[dict[str, Any]] = [
        {**shb, "epoch": 0},
        {**shb, "epoch": -1},
        {**chb, "epoch": 0, "rebalance": 5000, "owned": {}, "topics": ["foo"]},
        {**chb, "epoch": -1},
        {"op": "delete_groups", "groups": ["h", "g"], "persister": "lost"},
        {"op": "delete_groups", "groups": ["h", "g"]},
    ]
    events = run_script({"id": "x", "config": {"topics": {"foo": 1}}, "steps": steps})
    answers = [event for event in events if event["kind"] in ("delete_groups", "pending")]
    assert [(event["step"], event.get("groups")) for event in answers] == [
        (5, [["g", "NONE"], ["h", "NONE"]]),
        (4, None),
    ]
    states = [event for event in events if event["kind"] == "state" and event["step"] == 4]
    assert states[-1]["groups"].keys() == {"g", "h"}
