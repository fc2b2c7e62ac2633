"""Records of streams groups (KIP-1071) that are read again, topologies of many subtopologies, and
descriptions of topologies that nobody needs any more: the plugin deletes them (KIP-1331).

GroupCoordinatorService.runOneStreamsTopologyCleanupCycle of Kafka 4.4.0: as often as expired offsets are
looked for, of every empty streams group without offsets, which may then expire.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver, ScriptedPlugin, StreamsSetting
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from groupstorm.coordinator.streams.member import StreamsGroupRecord
from groupstorm.coordinator.streams.topology import (
    CopartitionGroup,
    Subtopology,
    TopicInfo,
    Topology,
    configure,
)
from groupstorm.coordinator.topics import Topic, Topics
from groupstorm.turns import at_once
from tests.coordinator.checked import run_script
from tests.coordinator.streams_scripts import NOTHING, OWNED, TOPOLOGY


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
    states = [event["groups"]["g"] for event in run_script(script) if event["kind"] == "state"]
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
    events = run_script(script)
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
    lines = run_script(script)
    assert next(line["t"] for line in lines if line["step"] == 5 and line["kind"] == "state") == 3001


EVERY_MS = 600_000
_DESCRIBED_JOIN = {"epoch": 0, "rebalance": 5000, "process": "p", "topology": "T", **NOTHING}
_DESCRIPTION: dict[str, Any] = {"subtopologies": [], "globals": []}


class _Described:
    """A group whose description the plugin holds and whose only member, "m", has left."""

    def __init__(self) -> None:
        self.plugin = ScriptedPlugin()

        def coordinator(config: CoordinatorConfig, **options: Any) -> GroupCoordinator:
            return GroupCoordinator(config, **{**options, "description_plugin": self.plugin})

        self.driver = Driver(
            CoordinatorConfig.from_mapping({"group.streams.initial.rebalance.delay.ms": 0}),
            names=Names("test"),
            topics={"in": 3, "rep": 3, "store": 3},
            coordinator=coordinator,
            keeps_records=True,
            streams=StreamsSetting({"T": TOPOLOGY}, has_plugin=True),
        )
        self.driver.receive(self.driver.coordinator.load((), 0))
        self.send("streams", member="m", version=1, **_DESCRIBED_JOIN)
        self.send("topology_update", topology_epoch=1, description=_DESCRIPTION)
        self.send("streams", version=1, epoch=-1)

    def send(self, op: str, **fields: Any) -> Any:
        return self.driver.send_step({"op": op, "as": "m", **fields}, object()).answers[-1].response

    def advance(self, duration_ms: int) -> None:
        for _ in self.driver.advance(duration_ms):
            pass

    def stored(self) -> list[int]:
        """The topology epochs that records say the plugin holds, each once in a row."""
        records: list[Record] = [record for records, _ in self.driver.appended for record in records]
        facts = [one.value for one in records if isinstance(one, StreamsGroupRecord)]
        epochs = [one.stored_epoch for one in facts if one is not None]
        return [epoch for number, epoch in enumerate(epochs) if number == 0 or epochs[number - 1] != epoch]

    @property
    def groups(self) -> list[str]:
        return [*self.driver.coordinator.groups]


@pytest.fixture
def described() -> _Described:
    return _Described()


def test_an_empty_groups_description_goes_and_the_group_with_it(described: _Described) -> None:
    described.advance(EVERY_MS - 1)
    assert described.stored() == [-1, -2, 1]
    assert described.groups == ["g"]
    described.advance(1)
    assert described.stored() == [-1, -2, 1, -2, -1]
    assert described.groups == []


def test_a_plugin_that_fails_is_asked_again_the_next_time(described: _Described) -> None:
    """The group waits for it, uncertain what the plugin holds."""
    described.plugin.way = "transient"
    described.advance(EVERY_MS)
    assert described.stored() == [-1, -2, 1, -2]
    assert described.groups == ["g"]
    described.plugin.way = None
    described.advance(EVERY_MS)
    assert described.stored() == [-1, -2, 1, -2, -1]
    assert described.groups == []
