"""The plugin that keeps descriptions of topologies, and the waits before a member is asked for one again.

Kafka: StreamsGroupTopologyDescriptionPlugin, StreamsGroupTopologyDescriptionBackoff (KIP-1331).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, Protocol

from groupstorm.coordinator.streams.messages import TopologyDescription

_FIRST_WAIT_MS = 30_000
_LONGEST_WAIT_MS = 3_600_000


class Outcome(Enum):
    """The outcome of a call of the plugin."""

    DONE = auto()
    #: It refuses the description for good.
    PERMANENT = auto()
    #: It failed for now.
    TRANSIENT = auto()
    #: The call itself has raised.
    RAISED = auto()
    #: There is no answer, and never will be.
    LOST = auto()


class PluginAnswer(NamedTuple):
    """The outcome, the plugin's own words for a failure, and the description that was asked for."""

    outcome: Outcome
    message: str | None = None
    description: TopologyDescription | None = None


class DescriptionPlugin(Protocol):
    """Keeps one description per group."""

    def set_topology(self, group: str, epoch: int, description: TopologyDescription, /) -> PluginAnswer: ...

    def get_topology(self, group: str, epoch: int, /) -> PluginAnswer: ...

    def delete_topology(self, group: str, /) -> PluginAnswer: ...


class Wait(NamedTuple):
    """A wait for one topology epoch; ``number``: how many came before it."""

    epoch: int
    number: int
    until_ms: int


class DescriptionWaits:
    """The waits by group, each twice as long as the one before. Kafka spreads them at random by a fifth."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}

    def get(self, group: str) -> Wait | None:
        return self._waits.get(group)

    def restore(self, group: str, wait: Wait | None) -> None:
        """Put back what `get` gave."""
        if wait is None:
            self._waits.pop(group, None)
        else:
            self._waits[group] = wait

    def is_running(self, group: str, epoch: int, now_ms: int) -> bool:
        wait = self._waits.get(group)
        return wait is not None and wait.epoch == epoch and now_ms < wait.until_ms

    def begin(self, group: str, epoch: int, now_ms: int) -> None:
        """The next wait for this epoch begins."""
        wait = self._waits.get(group)
        number = wait.number + 1 if wait is not None and wait.epoch == epoch else 0
        duration_ms = min(_FIRST_WAIT_MS << min(number, 10), _LONGEST_WAIT_MS)
        self._waits[group] = Wait(epoch, number, now_ms + duration_ms)

    def begin_after_failure(self, group: str, epoch: int, now_ms: int) -> None:
        """The next wait begins, unless one for a later topology runs already."""
        wait = self._waits.get(group)
        if wait is None or wait.epoch <= epoch:
            self.begin(group, epoch, now_ms)

    def end(self, group: str, epoch: int | None = None) -> None:
        """The wait for this epoch is over; None: whichever it is."""
        wait = self._waits.get(group)
        if wait is not None and epoch in (None, wait.epoch):
            del self._waits[group]
