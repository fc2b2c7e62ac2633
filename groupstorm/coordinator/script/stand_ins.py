"""The stand-ins of a script for the persister of share groups and the plugin for topology descriptions: each
step says how they answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.script.clients import InvalidStep
from groupstorm.coordinator.share.persister import Initialization
from groupstorm.coordinator.streams.description_plugin import Outcome, PluginAnswer
from groupstorm.coordinator.streams.messages import TopologyDescription
from groupstorm.turns import Turns

_LOST = "lost"


def persister_error(step: Mapping[str, Any]) -> Error | None:
    """The answer of the persister to what the step makes the coordinator ask; None: it is lost."""
    name = step.get("persister")
    if name is None:
        return NO_ERROR
    if name == _LOST:
        return None
    if not isinstance(name, str) or name not in Error.__members__:
        raise InvalidStep(f"persister: {name!r} is neither an error's name nor lost")
    return Error[name]


class ScriptedPersister:
    """``error``: its answer to the present step. ``asked`` keeps what it was asked to initialise."""

    def __init__(self) -> None:
        self.error: Error | None = NO_ERROR
        self.asked: list[tuple[str, Initialization]] = []

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        self.asked.append((group, asked))
        yield 0
        return self.error

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        del group, partitions
        yield 0
        return self.error


_NOTHING = "none"
_FAILURES = {
    "permanent": PluginAnswer(Outcome.PERMANENT, "never"),
    "transient": PluginAnswer(Outcome.TRANSIENT, "later"),
    "throw": PluginAnswer(Outcome.RAISED),
    "lost": PluginAnswer(Outcome.LOST),
}
_WAYS = (*_FAILURES, _NOTHING)


class ScriptedPlugin:
    """Keeps descriptions by group. ``way``: how the present step wants it to answer; None: with success."""

    def __init__(self) -> None:
        self.way: str | None = None
        self._kept: dict[str, tuple[int, TopologyDescription]] = {}

    def set_topology(self, group: str, epoch: int, description: TopologyDescription, /) -> PluginAnswer:
        if self.way is None:
            self._kept[group] = epoch, description
        return self._answer()

    def get_topology(self, group: str, epoch: int, /) -> PluginAnswer:
        kept_epoch, description = self._kept.get(group, (-1, None))
        is_found = self.way is None and kept_epoch == epoch
        return self._answer()._replace(description=description if is_found else None)

    def delete_topology(self, group: str, /) -> PluginAnswer:
        if self.way is None:
            self._kept.pop(group, None)
        return self._answer()

    def _answer(self) -> PluginAnswer:
        return _FAILURES.get(self.way or "", PluginAnswer(Outcome.DONE))


def plugin_way(step: Mapping[str, Any]) -> str | None:
    """The answer of the plugin for topology descriptions to what the step makes the coordinator ask."""
    way = step.get("plugin")
    if way is not None and way not in _WAYS:
        raise InvalidStep(f"plugin: {way!r} is not one of {', '.join(_WAYS)}")
    return way
