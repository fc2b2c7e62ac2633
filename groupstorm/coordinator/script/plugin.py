"""The plugin for topology descriptions of a script: each step says how it answers."""

from __future__ import annotations

from groupstorm.coordinator.streams.description_plugin import Outcome, PluginAnswer
from groupstorm.coordinator.streams.messages import TopologyDescription

NOTHING = "none"
_FAILURES = {
    "permanent": PluginAnswer(Outcome.PERMANENT, "never"),
    "transient": PluginAnswer(Outcome.TRANSIENT, "later"),
    "throw": PluginAnswer(Outcome.RAISED),
    "lost": PluginAnswer(Outcome.LOST),
}
WAYS = (*_FAILURES, NOTHING)


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
