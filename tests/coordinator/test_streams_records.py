"""Records of streams groups (KIP-1071) that are read again, and topologies of many subtopologies."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.coordinator.streams.topology import (
    CopartitionGroup,
    Subtopology,
    TopicInfo,
    Topology,
    configure,
)
from groupstorm.coordinator.topics import Topic, Topics
from groupstorm.turns import at_once
from tests.coordinator.streams_scripts import NOTHING, OWNED, run_streams


def test_a_step_reloads_the_records_and_nothing_else() -> None:
    join = {
        "op": "streams",
        "as": "a",
        "member": "A",
        "epoch": 0,
        "rebalance": 9000,
        "process": "p",
        **NOTHING,
    }
    beat = {"op": "streams", "as": "a", **OWNED, "task_offsets": {"0": {"0": 5}}, "shutdown": True}
    script = {
        "id": "reloaded",
        "config": {
            "topics": {"in": 1},
            "topologies": {"T": {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"]}]}},
            "group.streams.initial.rebalance.delay.ms": 0,
        },
        "steps": [join | {"topology": "T"}, beat, {"op": "reload"}, {"op": "advance", "ms": 60_000}],
    }
    states = [
        event["groups"]["g"]
        for event in run_streams(script, Compatibility.KAFKA_4_4_0)
        if event["kind"] == "state"
    ]
    before, after, expired = states[-3:]
    assert (before["shutdown"], before["members"][0]["task_offsets"]) == ("A", {"0": {"0": 5}})
    del before["members"][0]["task_offsets"]
    assert after == before | {"shutdown": None, "configured": None}
    assert expired["state"] == "Empty", "the session timer was set anew"


def _calls(count: int) -> int:
    """Calls of Python functions for a topology whose subtopologies read each other's output, the last one
    first, with a copartition group each."""
    subtopologies = [
        Subtopology(
            str(number),
            ("in",) if number == count - 1 else (),
            sinks=(f"rep{number}",),
            repartition=() if number == count - 1 else (TopicInfo(f"rep{number + 1}"),),
            copartition=(CopartitionGroup() if number == count - 1 else CopartitionGroup(repartition=(0,)),),
        )
        for number in range(count)
    ]
    topics = Topics()
    topics.update({"in": Topic(UUID(int=1), 3)}, ())
    counter = Counter[str]()
    sys.setprofile(lambda frame, event, argument: counter.update([event]))
    try:
        configured = at_once(configure(Topology(1, tuple(subtopologies)), topics))
    finally:
        sys.setprofile(None)
    assert configured.subtopologies is not None
    assert {one.tasks for one in configured.subtopologies.values()} == {3}
    return counter["call"]


def test_a_long_topology_is_configured_in_time_proportional_to_its_length() -> None:
    assert _calls(1_600) < 3 * _calls(800)


_JOIN = {
    "op": "streams",
    "as": "a",
    "member": "A",
    "epoch": 0,
    "rebalance": 9000,
    "topology": "T",
    **NOTHING,
}
_FAILING = _JOIN | {"append_error": "MESSAGE_TOO_LARGE"}
_UNKNOWN = {"op": "join", "as": "y", "member": "unknown"}
_CONSUMER = {"op": "chb", "as": "x", "member": "x", "rebalance": 5000, "owned": {}, "topics": []}


@pytest.mark.parametrize("last", [_FAILING, {"op": "reload"}])
def test_a_failed_write_and_a_reload_bring_back_a_group_that_a_classic_join_removed(
    last: dict[str, Any],
) -> None:
    """Kafka removes the group without a record, and goes back to its last record then."""
    script = {
        "id": "back",
        "config": {"topologies": {"T": {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"]}]}}},
        "steps": [
            _JOIN,
            {"op": "streams", "as": "a", "epoch": -1},
            _UNKNOWN,
            last,
        ],
    }
    events = run_streams(script, Compatibility.KAFKA_4_4_0)
    states = {event["step"]: event["groups"] for event in events if event["kind"] == "state"}
    assert states[2] == {}
    configured = {} if last is _FAILING else {"configured": None}
    assert states[3] == {"g": states[1]["g"] | configured}


@pytest.mark.parametrize(
    ("after", "loaded"),
    [
        ([{"op": "commit", "as": "y"}, _CONSUMER], {"g": "consumer"}),
        ([{"op": "join", "as": "y"}, {"op": "delete_groups"}], {}),
        ([_CONSUMER], None),
        ([_CONSUMER, {"op": "advance", "ms": 45_000}, {"op": "join", "as": "y"}], None),
    ],
)
def test_a_reload_reads_what_was_written_after_a_classic_join_removed_the_group(
    after: list[dict[str, Any]], loaded: dict[str, str] | None
) -> None:
    """Only records of a classic group take the place of the group that is still in the log. Kafka cannot load
    a log in which those of a consumer group follow directly (None)."""
    script = {
        "id": "removed",
        "config": {"topologies": {"T": {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"]}]}}},
        "steps": [_JOIN, {"op": "streams", "as": "a", "epoch": -1}, _UNKNOWN, *after, {"op": "reload"}],
    }
    answer = run_scenario(
        read_scenario(json.dumps(script), "x"), changes=False, kafka=Compatibility.KAFKA_4_4_0
    )
    assert ("failed" in answer) is (loaded is None)
    if loaded is not None:
        groups = answer["events"][-1]["groups"]
        assert {name: group["type"] for name, group in groups.items()} == loaded


def test_a_reload_ends_the_initial_delay_of_a_group_whose_creation_failed() -> None:
    join = {"op": "streams", "member": "A", "epoch": 0, "rebalance": 9000, "process": "p", **NOTHING}
    steps = [
        join | {"as": "a", "topology": "T", "append_error": "MESSAGE_TOO_LARGE"},
        {"op": "reload"},
        {"op": "advance", "ms": 1},
        join | {"as": "b", "member": "B", "topology": "T"},
        {"op": "streams", "as": "b"},
        {"op": "advance", "ms": 5000},
    ]
    topology = {"epoch": 1, "subtopologies": [{"id": "0", "sources": ["in"]}]}
    script = {"id": "delay", "config": {"topics": {"in": 1}, "topologies": {"T": topology}}, "steps": steps}
    lines = run_streams(script, Compatibility.KAFKA_4_4_0)
    assert next(line["t"] for line in lines if line["step"] == 5 and line["kind"] == "state") == 3001
