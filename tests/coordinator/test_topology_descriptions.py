"""Descriptions of topologies that nobody needs any more (KIP-1331): the plugin deletes them.

GroupCoordinatorService.runOneStreamsTopologyCleanupCycle of Kafka 4.4.0: as often as expired offsets are
looked for, of every empty streams group without offsets, which may then expire.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver, ScriptedPlugin, StreamsSetting
from groupstorm.coordinator.streams.member import StreamsGroupRecord
from tests.coordinator.streams_scripts import TOPOLOGY

EVERY_MS = 600_000
_JOIN = {
    "epoch": 0,
    "rebalance": 5000,
    "process": "p",
    "topology": "T",
    "active": {},
    "standby": {},
    "warmup": {},
}
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
        self.send("streams", member="m", version=1, **_JOIN)
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


def test_a_group_with_a_member_keeps_its_description(described: _Described) -> None:
    described.send("streams", member="m", version=1, **_JOIN)
    for _ in range(EVERY_MS // 40_000):
        described.advance(40_000)
        assert described.send("streams", version=1).error is Error.NONE
    assert described.stored() == [-1, -2, 1]


def test_an_empty_group_with_offsets_keeps_its_description(described: _Described) -> None:
    described.send("commit", member="", generation=-1, offsets={"in": {"0": 5}})
    described.advance(EVERY_MS)
    assert described.stored() == [-1, -2, 1]
    assert described.groups == ["g"]
