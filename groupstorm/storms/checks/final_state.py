"""The world at the end of a run, as the invariants see it.

It stays Python where `invariants` is compiled: mypyc's protocols have no subclasses in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition


class Owner(Protocol):
    """The work of a process."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...


class Consumer(Protocol):
    """A process that can own partitions."""

    name: str
    started: bool

    @property
    def work(self) -> Owner: ...


class FinalState(Protocol):
    """The world when the run is over, as the checks see it."""

    @property
    def consumers(self) -> Mapping[str, Consumer]: ...

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    @property
    def settled(self) -> bool: ...

    @property
    def unanswered(self) -> Sequence[str]:
        """Names of the processes whose requests are still parked."""
        ...

    @property
    def left_behind(self) -> Sequence[str]:
        """Names of members of a consumer group whose process is gone, and which no session removes."""
        ...
