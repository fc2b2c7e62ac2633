"""The protocol of a group: its changes (KIP-848, KIP-1071) or why it could not change; and under which one a
Kafka Streams application runs, with its warm-ups and restorations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from groupstorm.history.unknown import figures_from_us, settings_of
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as streams_events
from groupstorm.trace.events.group_states import GroupState

#: The error that a consumer of the new protocol gets from a group that cannot change.
REFUSED: Final = "GROUP_ID_NOT_FOUND"

POLICY: Final = "group.consumer.migration.policy"
_UPGRADES: Final = ("bidirectional", "upgrade")

_PROTOCOL: Final = "group.protocol"
STREAMS: Final = "streams"
CLASSIC: Final = "classic"


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
    """Takes the rows about changes of the protocol."""

    def __init__(self) -> None:
        self._changes: list[tuple[float, str, int]] = []
        self._refused = 0
        self._policy = ""
        self._of_streams = False
        #: Whether there was a group before, and whether another one has just taken its place.
        self._exists = self._is_replaced = False

    def started(self, event: world_events.ScenarioStarted) -> None:
        settings = settings_of(event)
        policy = settings.get(POLICY)
        self._of_streams = settings.get("application") == STREAMS
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
            kind = STREAMS if self._of_streams else "consumer"
            is_classic = event.state == GroupState.PREPARING_REBALANCE
            self._changes.append((now_us / 1e6, CLASSIC if is_classic else kind, event.generation))

    def failed(self, _now_us: int, event: member_events.MemberFailed) -> None:
        self._refused += event.error == REFUSED

    def migration(self) -> Migration:
        return Migration(tuple(self._changes), self._refused, self._policy, self._of_streams)


class TaskRun(NamedTuple):
    """``protocol``: "" of plain consumers. ``others``: the other settings, to find runs that are alike but
    for the protocol. ``warm_ups``: standbys that were placed to take over later; ``restored_us``: the time
    that tasks took to restore, in all."""

    protocol: str = ""
    others: str = ""
    warm_ups: int = 0
    restored_us: int = 0

    def words(self, text: str) -> str:
        """A sentence about groups whose broker assigns names the settings of this one."""
        return text.replace("group.consumer.", "group.streams.") if self.protocol else text


#: The value for plain consumers, and for a run that is not known.
NO_TASK_RUN: Final = TaskRun()


class TaskRunWatch:
    """Takes the rows about a Kafka Streams application, from `figures_from` on."""

    def __init__(self) -> None:
        self._protocol = self._others = ""
        self._from_us = self._warm_ups = self._restored_us = 0

    @property
    def handlers(self) -> Mapping[type, Callable[[int, Any], None]]:
        return {streams_events.WarmUpPlaced: self._placed, streams_events.TaskRestored: self._restored}

    def started(self, event: world_events.ScenarioStarted) -> None:
        self._from_us = figures_from_us(event) or 0
        settings = settings_of(event)
        if settings.get("application") == STREAMS:
            self._protocol = str(settings.pop(_PROTOCOL, CLASSIC))
            self._others = json.dumps(settings, sort_keys=True)

    def _placed(self, now_us: int, _event: streams_events.WarmUpPlaced) -> None:
        self._warm_ups += now_us >= self._from_us

    def _restored(self, now_us: int, event: streams_events.TaskRestored) -> None:
        if now_us >= self._from_us:
            self._restored_us += event.duration_us

    def run(self) -> TaskRun:
        return TaskRun(self._protocol, self._others, self._warm_ups, self._restored_us)
