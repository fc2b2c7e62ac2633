"""Streams groups (KIP-1071) beyond Kafka's recorded answers in `golden`: properties of random scripts, what a
repaired coordinator does better, records, and bad input."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ListedGroup, ListGroups, ListGroupsResponse, Response
from groupstorm.coordinator.modern.member import TaskState
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver, StreamsSetting
from groupstorm.coordinator.script.streams_printing import print_streams_group
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.messages import StreamsGroupHeartbeatResponse
from groupstorm.coordinator.streams.topology import Status
from tests.coordinator.checked import (
    CheckedCoordinator,
    check_loading,
    held_once,
    run_script,
)
from tests.coordinator.streams_scripts import NOTHING, OWNED, TOPOLOGY
from tests.oracle.scripts.streams_scripts import random_streams_script
from tests.soaking import one_in

_BOTH = (Compatibility.KAFKA_4_4_0, Compatibility.REPAIRED_4_4_0)


class _Checked(CheckedCoordinator):
    def check_group(self, group: Any) -> None:
        if not isinstance(group, StreamsGroup):
            return
        owned = held_once(
            task
            for member in group.members.values()
            for tasks in (member.assigned.active, member.revoking.active)
            for task in tasks
        )
        assert owned == set(group.active_process)
        held_once(task for target in group.targets.values() for task in target.active)
        assert group.epoch >= group.assignment_epoch
        assert all(one.epoch <= group.assignment_epoch for one in group.members.values())


@pytest.mark.parametrize("kafka", [*_BOTH, Compatibility.KAFKA_4_3_1])
def test_every_active_task_has_one_owner_at_any_time(kafka: Compatibility) -> None:
    for number in range(12):
        run_script(random_streams_script(1, number), kafka, coordinator=_Checked)


def test_random_scripts_reach_every_state_of_a_member_and_give_all_tasks_to_members() -> None:
    """Otherwise the property above says little."""
    states: Counter[str] = Counter()
    complete = 0
    for number in range(60):
        for event in run_script(random_streams_script(1, number)):
            group = event["groups"].get("g", {}) if event["kind"] == "state" else {}
            members = group["members"] if group.get("type") == "streams" else []
            states.update(member["state"] for member in members)
            complete += any(member["target"] for member in members) and all(
                member["assigned"] == member["target"] for member in members
            )
    assert set(states) == {state.value for state in TaskState}
    assert complete > 100


@pytest.mark.parametrize("kafka", one_in(2, _BOTH))
def test_a_described_group_has_what_heartbeats_were_told(kafka: Compatibility) -> None:
    described = 0
    for number in range(20):
        script = random_streams_script(1, number)
        ids = {
            step["as"]: step["member"] for step in script["steps"] if "member" in step and step["as"] != "r0"
        }
        for step in list(script["steps"]):
            script["steps"].insert(script["steps"].index(step) + 1, {"op": "describe_streams"})
        told: dict[str, Any] = {}
        for event in run_script(script, kafka):
            if event["kind"] == "streams" and event["active"] is not None:
                told[event["member"]] = {kind: event[kind] for kind in NOTHING if event[kind]}
            elif event["kind"] == "describe_streams":
                for member in event["members"]:
                    if member["member"] in ids.values() and member["member"] in told:
                        assert member["assigned"] == told[member["member"]]
                        described += 1
    assert described > 200


class _Streams:
    """One streams group in virtual time, by the steps of scripts."""

    def __init__(self, kafka: Compatibility, **options: Any) -> None:
        config = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}
        self.driver = Driver(
            CoordinatorConfig.from_mapping({**config, "groupstorm.compatibility": kafka, **options}),
            names=Names("test"),
            topics={"in": 3, "rep": 3, "store": 3},
            keeps_records=True,
            streams=StreamsSetting({"T": TOPOLOGY}),
        )

    def send(self, who: str, **fields: Any) -> StreamsGroupHeartbeatResponse:
        step = {"op": "streams", "as": who, "version": 1, **fields}
        answers = self.driver.send_step(step, object()).answers
        response: Response = answers[-1].response
        assert isinstance(response, StreamsGroupHeartbeatResponse)
        return response

    def join(self, who: str, **fields: Any) -> StreamsGroupHeartbeatResponse:
        usual = {"epoch": 0, "rebalance": 5000, "process": who, "topology": "T", "member": who, **NOTHING}
        return self.send(who, **{**usual, **fields})

    @property
    def group(self) -> StreamsGroup:
        group = self.driver.coordinator.group("g")
        assert isinstance(group, StreamsGroup)
        return group

    def state(self) -> dict[str, Any]:
        return print_streams_group(self.group, Names("test"))


def test_a_failed_write_of_a_repaired_coordinator_leaves_no_holder_of_standbys_behind() -> None:
    """Kafka's sets of processes are no timeline (S78): there the task stays unreleased for the process."""
    for kafka, is_clean in zip(_BOTH, (False, True), strict=True):
        streams = _Streams(kafka, **{"group.streams.num.standby.replicas": 1})
        for who in ("a", "b"):
            streams.join(who)
        for who in ("a", "b", "a", "b"):
            streams.send(who, **OWNED)
        before = {task: set(held) for task, held in streams.group.standby_processes.items()}
        assert before
        assert streams.send("b", epoch=-1, append_error="NOT_LEADER_OR_FOLLOWER").error
        assert (streams.group.standby_processes == before) is is_clean


def test_another_coordinator_loads_the_group_that_was_written() -> None:
    scripts = (random_streams_script(1, number) for number in range(12))
    facts = ("facts", "topology", "assignment_epoch", "active_process")
    check_loading(scripts, StreamsGroup, *facts)


_WRONG: list[tuple[dict[str, Any], Error, str]] = [
    ({"member": " "}, Error.INVALID_REQUEST, "MemberId can't be empty."),
    ({"instance": ""}, Error.INVALID_REQUEST, "InstanceId can't be empty."),
    ({"rack": "\t"}, Error.INVALID_REQUEST, "RackId can't be empty."),
    ({"rebalance": -1}, Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request."),
    ({"active": {"0": [1]}}, Error.INVALID_REQUEST, "ActiveTasks must be empty when (re-)joining."),
    ({"standby": None}, Error.INVALID_REQUEST, "StandbyTasks must be empty when (re-)joining."),
    ({"warmup": {"0": []}}, Error.INVALID_REQUEST, "WarmupTasks must be empty when (re-)joining."),
    ({"topology": None}, Error.INVALID_REQUEST, "Topology must be non-null when (re-)joining."),
    ({"topology": {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"], "regex": ["x"]}]}},
     Error.INVALID_REQUEST, "Regular expressions for source topics are not supported yet."),
    ({"topology": {"subtopologies": [{"id": "0", "changelogs": [{"name": "s", "partitions": 2}]}]}},
     Error.STREAMS_INVALID_TOPOLOGY,
     "Changelog topic s must have an undefined partition count, but it is set to 2."),
    ({"topology": {"epoch": 2, "subtopologies": []}}, Error.INVALID_REQUEST,
     "Topology updates are not supported yet."),
    ({"epoch": -2, "topology": None}, Error.INVALID_REQUEST, "InstanceId can't be null."),
    ({"epoch": -3, "topology": None}, Error.INVALID_REQUEST,
     "MemberEpoch is -3, but must be greater than or equal to -2."),
    ({"epoch": 2}, Error.INVALID_REQUEST, "Topology can only be provided when (re-)joining."),
    ({"epoch": 2, "topology": None, "warmup": None}, Error.INVALID_REQUEST,
     "If one task-type is non-null, all must be non-null."),
    ({"epoch": 2, "topology": None, "active": {"7": [0]}}, Error.INVALID_REQUEST,
     "Subtopology 7 does not exist in the topology."),
    ({"epoch": 2, "topology": None, "warmup": {"0": [3]}}, Error.INVALID_REQUEST,
     "Task 3 for subtopology 0 is invalid. Number of tasks for this subtopology: 3"),
    ({"epoch": 2, "topology": None, "task_offsets": [["1", 0, 5], ["1", 0, 6]]}, Error.INVALID_REQUEST,
     "Task offsets contain a duplicate entry for subtopology 1 and partition 0."),
    ({"epoch": 9, "topology": None}, Error.FENCED_MEMBER_EPOCH,
     "The streams group member has a greater member epoch (9) than the one known by the group coordinator"
     " (2). The member must abandon all its partitions and rejoin."),
    ({"epoch": 2, "topology": None, "member": "x"}, Error.UNKNOWN_MEMBER_ID,
     "Member x is not a member of group g."),
    ({"epoch": 2, "topology": None, "instance": "j"}, Error.UNKNOWN_MEMBER_ID, "Instance id j is unknown."),
    ({"epoch": 2, "topology": None, "group": "h"}, Error.GROUP_ID_NOT_FOUND, "Streams group h not found."),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "error", "message"), _WRONG, ids=lambda one: str(one)[:40])
def test_a_refused_heartbeat_says_why_and_harms_nobody(
    fields: dict[str, Any], error: Error, message: str
) -> None:
    streams = _Streams(Compatibility.REPAIRED_4_4_0)
    streams.join("a")
    streams.send("a")
    before, written = streams.state(), len(streams.driver.appended)
    response = streams.join("a", **fields)
    assert (response.error, response.error_message) == (error, message)
    assert response == StreamsGroupHeartbeatResponse(error, error_message=message)
    assert streams.state() == before
    assert len(streams.driver.appended) == written


@pytest.mark.parametrize(
    "topology",
    [
        {"epoch": -1, "subtopologies": []},
        {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"]}, {"id": "0", "sources": ["in"]}]},
        {"subtopologies": [{"id": "0", "sources": ["in"], "copartition": [{"sources": [1]}]}]},
        {"subtopologies": [{"id": "0", "sources": ["in"], "copartition": [{"sources": [-1]}]}]},
        {"subtopologies": [{"id": "0", "sources": ["in"], "changelogs": ["store", "store"]}]},
    ],
)
def test_a_topology_that_kafka_cannot_read_makes_no_group(topology: dict[str, Any]) -> None:
    streams = _Streams(Compatibility.REPAIRED_4_4_0)
    assert streams.join("a", topology=topology).error is Error.UNKNOWN_SERVER_ERROR
    assert streams.driver.coordinator.groups == []
    assert streams.join("a").error is Error.NONE


@pytest.mark.parametrize(
    "step",
    [
        {"topology": "U"},
        {"topology": "T@x"},
        {"topology": {"subtopologies": [{"id": 5}]}},
        {"topology": {"subtopologies": [{"id": "0", "sources": "in"}]}},
        {"topology": {"subtopologies": [{"id": "0", "changelogs": [3]}]}},
        {"endpoint": ["host"]},
        {"endpoint": ["host", 65_536]},
        {"tags": {"zone": 3}},
        {"active": [0]},
        {"active": {"0": ["1"]}},
        {"task_offsets": {"0": {"x": 1}}},
        {"task_offsets": [["0", 1]]},
        {"task_end_offsets": 5},
        {"shutdown": 1},
        {"endpoint_epoch": "x"},
        {"version": 2},
        {"plugin": "sometimes"},
        {"op": "topology_update", "description": {"subtopologies": [{"nodes": [{"type": 200}]}]}},
        {"op": "topology_update", "description": []},
        {"op": "describe_streams", "description": "yes"},
        {"op": "delete_groups", "groups": "g"},
    ],
)
def test_a_step_that_is_no_request_is_invalid_and_the_script_goes_on(step: dict[str, Any]) -> None:
    join = {"op": "streams", "epoch": 0, "member": "a", "rebalance": 5000, "topology": "T", **NOTHING}
    script = {"id": "x", "config": {"topologies": {"T": TOPOLOGY}}, "steps": [{**join, **step}, join]}
    events = run_script(script)
    assert [event["kind"] for event in events if event["kind"] != "state"] == ["invalid", "streams"]


def test_a_wish_to_shut_down_is_told_to_all_until_nobody_is_left() -> None:
    streams = _Streams(Compatibility.KAFKA_4_4_0)
    streams.join("a")
    streams.send("a", shutdown=True)
    assert Status.SHUTDOWN_APPLICATION in dict(streams.join("b").statuses)
    streams.send("a", epoch=-1)
    assert Status.SHUTDOWN_APPLICATION in dict(streams.send("b").statuses)
    streams.send("b", epoch=-1)
    assert streams.group.shutdown_member is None
    assert Status.SHUTDOWN_APPLICATION not in dict(streams.join("c").statuses)


def test_listed_by_type_and_by_the_state_as_filters_name_it() -> None:
    streams = _Streams(Compatibility.KAFKA_4_4_0)
    streams.join("a", topology={"subtopologies": [{"id": "0", "sources": ["nowhere"]}]})
    listed = ListedGroup("g", "streams", "NotReady", "streams")
    for request, expected in (
        (ListGroups(types=("Streams",)), (listed,)),
        (ListGroups(states=("not_ready",)), (listed,)),
        (ListGroups(states=("NotReady",)), ()),
        (ListGroups(types=("consumer",)), ()),
    ):
        effects = streams.driver.coordinator.handle(request, 0, "list")
        assert effects.replies == [("list", ListGroupsResponse(Error.NONE, expected))]
