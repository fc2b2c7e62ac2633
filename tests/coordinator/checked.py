"""Runs scripts on a coordinator whose groups are checked after every call, or that is looked at later."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from groupstorm.coordinator.config import Compatibility, CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario


class CheckedCoordinator(GroupCoordinator, ABC):
    """A room says in ``check_group`` what holds of a group at any time."""

    def handle(self, *arguments: Any) -> Any:
        effects = super().handle(*arguments)
        self._check()
        return effects

    def fire_one(self, now_ms: int) -> Any:
        effects = super().fire_one(now_ms)
        self._check()
        return effects

    def _check(self) -> None:
        for name in self.groups:
            self.check_group(self.group(name))

    @abstractmethod
    def check_group(self, group: Any) -> None:
        """Fail if the group breaks one of the room's rules."""


def held_once(held: Iterable[object]) -> set[object]:
    """Return what is held; fail if something has several holders."""
    counts = Counter(held)
    assert not [one for one, count in counts.items() if count > 1]
    return set(counts)


def run_script(
    script: Mapping[str, Any], kafka: Compatibility = Compatibility.KAFKA_4_4_0, **options: Any
) -> list[dict[str, Any]]:
    """The events of the script, of which only states that differ are shown."""
    answer = run_scenario(read_scenario(json.dumps(script), "x"), changes=True, kafka=kafka, **options)
    assert "failed" not in answer
    return list(answer["events"])


def coordinator_after(
    script: Mapping[str, Any], kafka: Compatibility = Compatibility.KAFKA_4_4_0
) -> GroupCoordinator:
    """The coordinator that the script has driven."""
    made: list[GroupCoordinator] = []

    def keep(*arguments: Any, **options: Any) -> GroupCoordinator:
        made.append(GroupCoordinator(*arguments, **options))
        return made[-1]

    run_script(script, kafka, coordinator=keep)
    return made[-1]


def loaded(records: Iterable[Record]) -> GroupCoordinator:
    """Another coordinator, loaded with these records at 0 ms."""
    coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=str, whole_records=True)
    coordinator.load(records, 0)
    return coordinator


def check_loading(scripts: Iterable[Mapping[str, Any]], kind: type[Any], *facts: str) -> None:
    """Fail if a coordinator that is loaded with what another wrote has not the same group of this kind, or if
    a session of a member that it has loaded does not end."""
    compared = 0
    for script in scripts:
        coordinator = coordinator_after(script)
        other = loaded(coordinator.snapshot())
        before, after = coordinator.group("g"), other.group("g")
        if not isinstance(before, kind):
            continue
        compared += 1
        assert isinstance(after, kind)
        for fact in facts:
            assert getattr(after, fact) == getattr(before, fact)
        assert dict(after.members.items()) == dict(before.members.items())
        assert dict(after.targets.items()) == dict(before.targets.items())
        for member_id in after.members:
            other.expire_session("g", member_id, 1)
        assert not after.members
    assert compared > 6
