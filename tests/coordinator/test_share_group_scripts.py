"""Scripts of share groups (KIP-932): properties of random ones, and steps that are no requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.coordinator.share.member import StatePartitions
from tests.coordinator.checked import CheckedCoordinator
from tests.coordinator.share_scripts import random_share_script


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
    for number in range(15):
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
    assert complete > 150
    assert shared > 50


def test_another_coordinator_loads_the_group_that_was_written() -> None:
    for number in range(12):
        made: list[GroupCoordinator] = []

        def keep(*arguments: Any, made: list[GroupCoordinator] = made, **options: Any) -> GroupCoordinator:
            made.append(GroupCoordinator(*arguments, **options))
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
