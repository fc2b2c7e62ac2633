"""The changes of a group's protocol (KIP-848, KIP-1071), and the reasons why it could not change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events.group_states import GroupState

#: The error that a consumer of the new protocol gets from a group that cannot change.
REFUSED: Final = "GROUP_ID_NOT_FOUND"

POLICY: Final = "group.consumer.migration.policy"
_UPGRADES: Final = ("bidirectional", "upgrade")


@dataclass(frozen=True, slots=True)
class Migration:
    """``changes``: seconds, "upgraded" or "downgraded", or the kind that the group, empty, was replaced by;
    generation. ``refused``: consumers that ended because the group could not change; ``policy``:
    group.consumer.migration.policy, if it forbids it; ``of_streams``: an application of Kafka Streams, whose
    group changes only while it is empty."""

    changes: tuple[tuple[float, str, int], ...] = ()
    refused: int = 0
    policy: str = ""
    of_streams: bool = False


class MigrationWatch:
    """Takes the rows that are about it."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, int]] = []
        self._refused = 0
        self._policy = ""
        self._of_streams = False
        #: Whether there was a group before, and whether another one has just taken its place.
        self._exists = self._is_replaced = False

    def started(self, event: world_events.ScenarioStarted) -> None:
        try:
            scenario = json.loads(event.detail)
        except ValueError:
            return
        settings = scenario.get("settings") if isinstance(scenario, dict) else None
        if not isinstance(settings, dict):
            return
        policy = settings.get(POLICY)
        self._of_streams = settings.get("application") == "streams"
        self._policy = "" if policy is None or policy in _UPGRADES else str(policy)

    def converted(self, now_us: int, event: events.GroupConverted) -> None:
        self._changes.append((now_us / 1e6, event.cause, event.generation))

    def created(self, _now_us: int, _event: events.GroupCreated) -> None:
        self._is_replaced, self._exists = self._exists, True

    def deleted(self, _now_us: int, _event: events.GroupDeleted) -> None:
        self._exists = False

    def state_changed(self, now_us: int, event: events.GroupStateChanged) -> None:
        """The first state of a group that has taken an empty one's place says of which kind it is."""
        if self._is_replaced:
            self._is_replaced = False
            kind = "streams" if self._of_streams else "consumer"
            is_classic = event.state == GroupState.PREPARING_REBALANCE
            self._changes.append((now_us / 1e6, "classic" if is_classic else kind, event.generation))

    def failed(self, _now_us: int, event: member_events.MemberFailed) -> None:
        self._refused += event.error == REFUSED

    def migration(self) -> Migration:
        return Migration(tuple(self._changes), self._refused, self._policy, self._of_streams)
