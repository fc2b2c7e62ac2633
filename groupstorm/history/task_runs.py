"""The protocol, warm-ups and restorations of a Kafka Streams application: for the answer of a comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from groupstorm.history.figures_from import figures_from_us
from groupstorm.trace.events import scenario as world_events
from groupstorm.trace.events import streams as events

_PROTOCOL: Final = "group.protocol"
STREAMS: Final = "streams"
CLASSIC: Final = "classic"


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
    """Takes the rows that are about it, from `figures_from` on."""

    def __init__(self) -> None:
        self._protocol = self._others = ""
        self._from_us = self._warm_ups = self._restored_us = 0

    @property
    def handlers(self) -> Mapping[type, Callable[[int, Any], None]]:
        return {events.WarmUpPlaced: self._placed, events.TaskRestored: self._restored}

    def started(self, event: world_events.ScenarioStarted) -> None:
        self._from_us = figures_from_us(event) or 0
        try:
            settings = json.loads(event.detail).get("settings")
        except (ValueError, AttributeError):
            return
        if isinstance(settings, dict) and settings.get("application") == STREAMS:
            self._protocol = str(settings.pop(_PROTOCOL, CLASSIC))
            self._others = json.dumps(settings, sort_keys=True)

    def _placed(self, now_us: int, _event: events.WarmUpPlaced) -> None:
        self._warm_ups += now_us >= self._from_us

    def _restored(self, now_us: int, event: events.TaskRestored) -> None:
        if now_us >= self._from_us:
            self._restored_us += event.duration_us

    def run(self) -> TaskRun:
        return TaskRun(self._protocol, self._others, self._warm_ups, self._restored_us)
