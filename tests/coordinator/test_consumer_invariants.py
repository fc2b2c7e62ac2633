"""Properties of consumer groups over random scripts of consumer groups and migrations: no partition has two
owners, epochs never go back, nothing waits for ever."""

from __future__ import annotations

from typing import Any, cast

import pytest

from groupstorm.broker.changes import Change
from groupstorm.broker.journal import decode, encode
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.records import Record
from tests.coordinator.checked import CheckedCoordinator, coordinator_after, held_once, loaded, run_script
from tests.coordinator.consumer_world import group_state, held_partitions
from tests.oracle.scripts.group_scripts import random_group_script


class _Checked(CheckedCoordinator):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._epochs: dict[int, tuple[int, dict[str, int]]] = {}
        self._seen: list[ConsumerGroup] = []

    def check_group(self, group: Any) -> None:
        if isinstance(group, ConsumerGroup):
            self._check_owners(group)
            self._check_epochs(group)

    def _check_owners(self, group: ConsumerGroup) -> None:
        owned = held_once(
            (topic, number)
            for member in group.members.values()
            for partitions in (member.assigned, member.revoking)
            for topic, numbers in partitions.items()
            for number in numbers
        )
        assert owned == set(held_partitions(group))
        held_once(
            (topic, number)
            for target in group.targets.values()
            for topic, numbers in target.items()
            for number in numbers
        )

    def _check_epochs(self, group: ConsumerGroup) -> None:
        if group not in self._seen:
            self._seen.append(group)  # keeps the identity from being reused
        epoch, members = self._epochs.get(id(group), (0, {}))
        assert group.epoch >= max(epoch, group.assignment_epoch)
        now = {one.member_id: one.epoch for one in group.members.values()}
        for member_id, before in members.items():
            if before > 0 and now.get(member_id, 0) > 0:
                assert now[member_id] >= before
        assert all(one <= group.assignment_epoch for one in now.values())
        self._epochs[id(group)] = group.epoch, now


def _scripts(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    number = 0
    while len(found) < 40:
        script = random_group_script(kind, 3, number)
        number += 1
        if not any("append_error" in step for step in script["steps"]):
            found.append(script)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["consumer", "migration"])
def test_one_owner_and_growing_epochs(kind: str) -> None:
    for script in _scripts(kind):
        run_script(script, Compatibility.KAFKA_4_3_1, coordinator=_Checked)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["consumer", "migration"])
def test_another_coordinator_loads_the_group_that_was_written(kind: str) -> None:
    """Records are bytes and back in between, as in the journal of `serve --data`."""
    compared = 0
    for script in _scripts(kind):
        coordinator = coordinator_after(script, Compatibility.KAFKA_4_3_1)
        records, _ = decode(encode(cast("list[Change]", coordinator.snapshot())))
        other = loaded(cast("list[Record]", records))
        for name in coordinator.groups:
            before, after = coordinator.group(name), other.group(name)
            if isinstance(before, ConsumerGroup):
                assert isinstance(after, ConsumerGroup)
                assert group_state(after) == group_state(before), script["id"]
                compared += 1
    assert compared >= 15


def test_every_request_to_a_consumer_group_is_answered() -> None:
    """Nothing is ever parked in a consumer group; parked classic requests are answered by an upgrade."""
    for script in _scripts("consumer"):
        events = run_script(script, Compatibility.KAFKA_4_3_1)
        waiting = {event["of"] for event in events if event["kind"] == "pending"}
        assert waiting <= {"join", "sync"}
        assert "chb" not in waiting
