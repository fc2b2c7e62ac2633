"""Share groups (KIP-932) beyond Kafka's recorded answers in `golden`: properties of random scripts, records,
the persister, bad input, and the simple assignor by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from groupstorm.assignors.contract import AssignmentRefused, MapOrder
from groupstorm.assignors.server import MemberSpec, ServerGroup, TopicDescription, assign_simple
from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    DeleteGroup,
    DeleteGroupResponse,
    ListedGroup,
    ListGroups,
    ListGroupsResponse,
)
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.messages import (
    DescribeShareGroup,
    DescribeShareGroupResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.share.records import StatePartitions
from groupstorm.coordinator.topics import Topic
from tests.coordinator.checked import CheckedCoordinator
from tests.coordinator.share_scripts import random_share_script

_FOO, _BAR = UUID(int=1), UUID(int=2)


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


def _run(script: Mapping[str, Any], kafka: Compatibility, **options: Any) -> list[dict[str, Any]]:
    answer = run_scenario(read_scenario(json.dumps(script), "x"), changes=True, kafka=kafka, **options)
    assert "failed" not in answer
    return list(answer["events"])


@pytest.mark.parametrize("kafka", [Compatibility.KAFKA_4_4_0, Compatibility.KAFKA_4_3_1])
def test_random_scripts_keep_the_rules_and_give_all_initialised_partitions(kafka: Compatibility) -> None:
    complete = shared = 0
    for number in range(30):
        for event in _run(random_share_script(number), kafka, coordinator=_Checked):
            group = event["groups"].get("g") if event["kind"] == "state" else None
            if group is None or not group["members"] or group["epoch"] != group["assignment_epoch"]:
                continue
            targets = [(topic, p) for m in group["members"] for topic, ps in m["target"].items() for p in ps]
            wanted = {topic for member in group["members"] for topic in member["topics"]}
            initialized = {
                (topic, p) for topic, ps in group["initialized"].items() if topic in wanted for p in ps
            }
            complete += bool(initialized) and initialized <= set(targets)
            shared += len(set(targets)) < len(targets)
    assert complete > 300
    assert shared > 100


class _Persister:
    """Answers with ``error``; None: never."""

    def __init__(self) -> None:
        self.error: Error | None = Error.NONE
        self.initialized: list[Initialization] = []
        self.deleted: list[tuple[str, dict[UUID, list[int]]]] = []

    def initialize(self, group: str, asked: Initialization, /) -> Error | None:
        assert group == "g"
        self.initialized.append(asked)
        return self.error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Error | None:
        self.deleted.append((group, {topic: sorted(numbers) for topic, numbers in partitions.items()}))
        return self.error


class _Share:
    """A coordinator of share groups with two topics, whose clock the test sets."""

    def __init__(self, kafka: Compatibility = Compatibility.REPAIRED_4_4_0) -> None:
        self.persister = _Persister()
        self.append_error: Error | None = None
        self.records: list[Record] = []
        config = CoordinatorConfig.from_mapping(
            {"groupstorm.compatibility": kafka, "group.share.assignment.interval.ms": 0}
        )
        self.coordinator = GroupCoordinator(
            config, member_ids=str, append=self._append, whole_records=True, persister=self.persister
        )
        self.now_ms = 1_000
        self.coordinator.update_topics({"foo": Topic(_FOO, 2), "bar": Topic(_BAR, 1)}, (), self.now_ms)

    def _append(self, records: Any, cause: AppendCause) -> tuple[int, Error | None]:
        del cause
        if self.append_error is None:
            self.records += records
        return 0, self.append_error

    def ask(self, request: Any) -> Any:
        """The answer to a request; what follows at the same instant follows."""
        replies = self.coordinator.handle(request, self.now_ms, "it").replies
        self.coordinator.fire(self.now_ms)
        return replies[0][1] if replies else None

    def beat(self, member: str, epoch: int, *topics: str, **fields: Any) -> ShareGroupHeartbeatResponse:
        answer = self.ask(ShareGroupHeartbeat("g", member, epoch, topics=topics or None, **fields))
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        return answer

    @property
    def group(self) -> ShareGroup:
        group = self.coordinator.group("g")
        assert isinstance(group, ShareGroup)
        return group


def test_a_member_gets_its_partitions_with_the_heartbeat_after_their_initialisation() -> None:
    share = _Share()
    joined = share.beat("a", 0, "foo", "bar")
    assert joined == ShareGroupHeartbeatResponse(Error.NONE, "a", 2, 5_000, {})
    assert share.persister.initialized == [Initialization(2, {_FOO: {0: -1, 1: -1}, _BAR: {0: -1}})]
    given = share.beat("a", 2)
    assert given.member_epoch == 3
    assert given.assignment == {_FOO: (0, 1), _BAR: (0,)}
    assert share.beat("a", 3).assignment is None


def test_no_partition_is_handed_to_one_member_alone_while_another_has_none() -> None:
    """Three members share three partitions twice: ceil(3 / 3) each; a fourth makes every partition shared."""
    share = _Share()
    for name in ("a", "b", "c"):
        share.beat(name, 0, "foo", "bar")
    share.beat("a", 0, "foo", "bar")
    held = {name: sum(map(len, share.group.target(name).values())) for name in ("a", "b", "c")}
    assert held == {"a": 1, "b": 1, "c": 1}
    share.beat("d", 0, "foo", "bar")
    held = {name: sum(map(len, share.group.target(name).values())) for name in ("a", "b", "c", "d")}
    assert sorted(held.values()) == [1, 1, 2, 2]


def test_a_lost_answer_is_asked_for_again_after_the_retry_interval() -> None:
    share = _Share()
    share.persister.error = None
    share.beat("a", 0, "foo")
    share.now_ms += 29_999
    share.beat("a", 2)
    assert len(share.persister.initialized) == 1
    share.now_ms += 1
    share.beat("a", 2)
    assert share.persister.initialized[1] == Initialization(2, {_FOO: {0: 0, 1: 0}})


def test_kafka_4_3_1_lets_the_option_decide_the_start_of_new_partitions_of_a_known_topic() -> None:
    for kafka, start in ((Compatibility.KAFKA_4_4_0, 0), (Compatibility.KAFKA_4_3_1, -1)):
        share = _Share(kafka)
        share.beat("a", 0, "foo")
        share.coordinator.update_topics({"foo": Topic(_FOO, 3)}, (), share.now_ms)
        share.beat("a", 2)
        assert share.persister.initialized[-1].starts == {_FOO: {2: start}}


def test_a_refusal_of_the_persister_and_a_failed_record_of_its_answer_are_forgotten() -> None:
    share = _Share()
    share.persister.error = Error.COORDINATOR_LOAD_IN_PROGRESS
    share.beat("a", 0, "foo")
    assert share.group.state_partitions == StatePartitions()
    share.persister.error = Error.NONE
    request = ShareGroupHeartbeat("g", "a", 2)
    share.coordinator.handle(request, share.now_ms, "it")
    share.append_error = Error.NOT_ENOUGH_REPLICAS
    share.coordinator.fire(share.now_ms)
    share.append_error = None
    known = share.group.state_partitions
    assert known is not None
    assert not known.initialized


def test_the_persister_is_not_asked_if_the_records_of_the_heartbeat_fail() -> None:
    share = _Share()
    share.append_error = Error.NOT_LEADER_OR_FOLLOWER
    assert share.beat("a", 0, "foo").error is Error.NOT_COORDINATOR
    assert share.persister.initialized == []
    assert share.coordinator.groups == []


def test_an_empty_group_of_kafka_4_4_gives_the_next_member_a_target_at_once() -> None:
    for kafka, assignment_epoch in ((Compatibility.KAFKA_4_4_0, 4), (Compatibility.KAFKA_4_3_1, 3)):
        share = _Share(kafka)
        share.beat("a", 0, "foo")
        share.beat("a", 2)
        share.beat("a", -1)
        assert (share.group.epoch, share.group.assignment_epoch) == (4, assignment_epoch)
        assert share.beat("b", 0, "foo").assignment == {_FOO: (0, 1)}


def test_a_silent_member_is_removed_and_its_group_stays() -> None:
    share = _Share()
    share.beat("a", 0, "foo")
    assert share.coordinator.next_deadline() == share.now_ms + 45_000
    share.coordinator.fire(share.now_ms + 45_000)
    assert share.group.state == "Empty"
    known = share.group.state_partitions
    assert known is not None
    assert known.initialized == {_FOO: frozenset({0, 1})}


def test_a_deleted_topic_has_no_share_partitions_any_more() -> None:
    share = _Share()
    share.beat("a", 0, "foo", "bar")
    share.coordinator.update_topics({}, ["foo"], share.now_ms)
    known = share.group.state_partitions
    assert known is not None
    assert known.initialized == {_BAR: frozenset({0})}
    written = len(share.records)
    share.coordinator.update_topics({}, ["nowhere"], share.now_ms)
    assert len(share.records) == written


def test_a_group_is_deleted_after_the_state_of_its_partitions() -> None:
    share = _Share()
    share.beat("a", 0, "foo")
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.NON_EMPTY_GROUP)
    share.beat("a", -1)
    share.persister.error = Error.REQUEST_TIMED_OUT
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.REQUEST_TIMED_OUT)
    assert share.group.state_partitions == StatePartitions(deleting=frozenset({_FOO}))
    share.persister.error = None
    assert share.ask(DeleteGroup("g")) is None
    share.persister.error = Error.NONE
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.NONE)
    assert share.persister.deleted == [("g", {_FOO: [0, 1]})] * 3
    assert share.coordinator.groups == []
    assert share.coordinator.snapshot() == []


def test_a_group_whose_records_cannot_be_deleted_says_so() -> None:
    share = _Share()
    share.beat("a", 0, "foo")
    share.beat("a", -1)
    share.append_error = Error.NOT_ENOUGH_REPLICAS
    assert share.ask(DeleteGroup("g")) == DeleteGroupResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert share.group.state == "Empty"


def test_another_coordinator_loads_the_group_that_was_written() -> None:
    for number in range(12):
        made: list[GroupCoordinator] = []

        def keep(*arguments: Any, made: list[GroupCoordinator] = made, **options: Any) -> GroupCoordinator:
            made.append(GroupCoordinator(*arguments, **options, whole_records=True))
            return made[-1]

        _run(random_share_script(number), Compatibility.KAFKA_4_4_0, coordinator=keep)
        group = made[0].group("g")
        other = GroupCoordinator(CoordinatorConfig(), member_ids=str, whole_records=True)
        other.load(made[0].snapshot(), 0)
        loaded = other.group("g")
        assert isinstance(group, ShareGroup)
        assert isinstance(loaded, ShareGroup)
        assert (loaded.epoch, loaded.metadata_hash) == (group.epoch, group.metadata_hash)
        assert loaded.assignment_epoch == group.assignment_epoch
        assert loaded.state_partitions == group.state_partitions
        assert dict(loaded.members.items()) == dict(group.members.items())
        assert dict(loaded.targets.items()) == dict(group.targets.items())
        assert loaded.subscribed == group.subscribed
        other.fire(45_000)
        assert not loaded.members


_WRONG: list[tuple[ShareGroupHeartbeat, Error, str]] = [
    (ShareGroupHeartbeat("g", " ", 2), Error.INVALID_REQUEST, "MemberId can't be empty."),
    (ShareGroupHeartbeat("", "a", 2), Error.INVALID_REQUEST, "GroupId can't be empty."),
    (ShareGroupHeartbeat("g", "a", 2, rack="\t"), Error.INVALID_REQUEST, "RackId can't be empty."),
    (
        ShareGroupHeartbeat("g", "a", 0, topics=()),
        Error.INVALID_REQUEST,
        "SubscribedTopicNames must be set in first request.",
    ),
    (ShareGroupHeartbeat("g", "a", -2), Error.INVALID_REQUEST, "MemberEpoch is invalid."),
    (ShareGroupHeartbeat("h", "a", 2), Error.GROUP_ID_NOT_FOUND, "Share group h not found."),
    (ShareGroupHeartbeat("h", "a", -1), Error.GROUP_ID_NOT_FOUND, "Group h not found."),
    (ShareGroupHeartbeat("g", "b", -1), Error.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."),
    (ShareGroupHeartbeat("g", "b", 2), Error.UNKNOWN_MEMBER_ID, "Member b is not a member of group g."),
    (
        ShareGroupHeartbeat("g", "a", 9),
        Error.FENCED_MEMBER_EPOCH,
        "The share group member has a greater member epoch (9) than the one known by the group coordinator"
        " (3). The member must abandon all its partitions and rejoin.",
    ),
    (
        ShareGroupHeartbeat("g", "a", 1),
        Error.FENCED_MEMBER_EPOCH,
        "The share group member has a smaller member epoch (1) than the one known by the group coordinator"
        " (3), and it does not match the previous member epoch (2). The member must abandon all its"
        " partitions and rejoin.",
    ),
]


@pytest.mark.parametrize(("request_", "error", "message"), _WRONG, ids=lambda one: str(one)[:40])
def test_a_refused_heartbeat_says_why_and_harms_nobody(
    request_: ShareGroupHeartbeat, error: Error, message: str
) -> None:
    share = _Share()
    share.beat("a", 0, "foo")
    share.beat("a", 2)
    before, written = repr(share.group), len(share.records)
    assert share.ask(request_) == ShareGroupHeartbeatResponse(error, error_message=message)
    assert (repr(share.group), len(share.records)) == (before, written)


def test_a_full_group_takes_its_own_members_alone() -> None:
    coordinator = GroupCoordinator(
        CoordinatorConfig.from_mapping({"group.share.max.size": 1}), member_ids=str
    )
    ask = partial(coordinator.handle, now_ms=0, token="it")
    for member, error in (("a", Error.NONE), ("b", Error.GROUP_MAX_SIZE_REACHED), ("a", Error.NONE)):
        ((_, answer),) = ask(ShareGroupHeartbeat("g", member, 0, topics=("foo",))).replies
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        assert answer.error is error


def test_described_and_listed() -> None:
    share = _Share()
    share.beat("a", 0, "foo", client_id="c", rack="r")
    share.beat("a", 2, client_id="c")
    described = share.ask(DescribeShareGroup("g"))
    assert isinstance(described, DescribeShareGroupResponse)
    assert described[:6] == (Error.NONE, "g", "Stable", 3, 3, "simple")
    assert [tuple(member) for member in described.members] == [
        ("a", "r", 3, "c", "/127.0.0.1", ("foo",), {"foo": (0, 1)})
    ]
    assert share.ask(DescribeShareGroup("")).error is Error.INVALID_GROUP_ID
    assert share.ask(DescribeShareGroup("h")).error_message == "Group h not found."
    listed = ListedGroup("g", "share", "Stable", "share")
    for request, expected in (
        (ListGroups(types=("Share",)), (listed,)),
        (ListGroups(states=("stable",)), (listed,)),
        (ListGroups(types=("consumer",)), ()),
    ):
        assert share.ask(request) == ListGroupsResponse(Error.NONE, expected)


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
    events = _run(script, Compatibility.KAFKA_4_4_0)
    assert [event["kind"] for event in events if event["kind"] != "state"] == ["invalid", "shb"]


def _dealt(
    topics: Mapping[str, int], members: Mapping[str, MemberSpec], assignable: Mapping[UUID, Iterable[int]]
) -> dict[str, Any]:
    ids = {"foo": _FOO, "bar": _BAR}
    known = {name: TopicDescription(ids[name], count) for name, count in topics.items()}
    group = ServerGroup(known, list(members), list(members.values()), MapOrder.JAVA_HASH)
    sets = {topic: frozenset(numbers) for topic, numbers in assignable.items()}
    return dict(zip(members, assign_simple(group, sets), strict=True))


def test_each_topic_is_dealt_by_itself_to_those_who_name_it() -> None:
    """By hand: foo has two members for two partitions, bar one for one."""
    members = {"a": MemberSpec(["foo"], {}), "b": MemberSpec(["foo", "bar"], {})}
    dealt = _dealt({"foo": 2, "bar": 1}, members, {_FOO: [0, 1], _BAR: [0]})
    assert dealt == {"a": {_FOO: [0]}, "b": {_FOO: [1], _BAR: [0]}}


def test_a_member_keeps_what_it_has_and_a_topic_without_partitions_stays_in_its_target() -> None:
    """By hand: each of two members shall have one of two partitions. a gives up the first of its Java set:
    the hashes are 31 x 1 + 0 and 31 x 1 + 1, which 16 buckets take in the order 1, 0."""
    members = {"a": MemberSpec(["foo"], {_FOO: [0, 1]}), "b": MemberSpec(["foo"], {})}
    assert _dealt({"foo": 2}, members, {_FOO: [0, 1]}) == {"a": {_FOO: [0]}, "b": {_FOO: [1]}}
    assert _dealt({"foo": 2}, members, {}) == {"a": {_FOO: []}, "b": {}}


def test_a_target_of_nobodys_topics_is_emptied() -> None:
    members = {"a": MemberSpec([], {_FOO: [0]}), "b": MemberSpec([], {})}
    assert _dealt({"foo": 1}, members, {_FOO: [0]}) == {"a": {}, "b": {}}
    members = {"a": MemberSpec(["gone"], {_FOO: [0]}), "b": MemberSpec(["lost"], {})}
    assert _dealt({"foo": 1}, members, {_FOO: [0]}) == {"a": {}, "b": {}}


def test_partitions_that_are_no_longer_assignable_may_leave_nobody_with_room() -> None:
    """Kafka's own defect: foo-1 and foo-2 have no state any more, but count for a and b, which have all that
    they shall have, one partition. foo-1 shall have three members: c is the second, and there is no third."""
    members = {
        "a": MemberSpec(["foo"], {_FOO: [1]}),
        "b": MemberSpec(["foo"], {_FOO: [2]}),
        "c": MemberSpec(["foo"], {}),
    }
    with pytest.raises(AssignmentRefused, match="NoSuchElementException"):
        _dealt({"foo": 3}, members, {_FOO: [0]})


@pytest.mark.parametrize(
    ("kafka", "is_left"), [(Compatibility.KAFKA_4_4_0, True), (Compatibility.REPAIRED_4_4_0, False)]
)
def test_a_join_that_breaks_the_assignor_leaves_a_member_behind_in_kafka_alone(
    kafka: Compatibility, is_left: bool
) -> None:
    """A topic that is made anew under its old id, as only scripts do, is in targets but not assignable."""
    share = _Share(kafka)
    for name in ("a", "b", "a", "b"):
        share.beat(name, 0, "foo", "bar")
    share.persister.error = None
    share.coordinator.update_topics({}, ["foo"], share.now_ms)
    share.coordinator.update_topics({"foo": Topic(_FOO, 2)}, (), share.now_ms)
    assert share.beat("c", 0, "foo", "bar").error is Error.UNKNOWN_SERVER_ERROR
    assert ("c" in share.group.members) is is_left


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
    events = _run({"id": "x", "config": {"topics": {"foo": 1}}, "steps": steps}, Compatibility.KAFKA_4_4_0)
    answers = [event for event in events if event["kind"] in ("delete_groups", "pending")]
    assert [(event["step"], event.get("groups")) for event in answers] == [
        (5, [["g", "NONE"], ["h", "NONE"]]),
        (4, None),
    ]
    states = [event for event in events if event["kind"] == "state" and event["step"] == 4]
    assert states[-1]["groups"].keys() == {"g", "h"}
