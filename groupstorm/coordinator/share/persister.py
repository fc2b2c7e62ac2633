"""The persister of the state of share partitions, as the group coordinator sees it.

Kafka: Persister, of which the coordinator uses initializeState and deleteState.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.turns import Turns


class Initialization(NamedTuple):
    """The partitions to initialise, by topic id, each with its start offset (-1: the group's option decides).

    ``epoch``: the group epoch, which becomes the state epoch of the partitions.
    """

    epoch: int
    starts: Mapping[UUID, Mapping[int, int]]


class Persister(Protocol):
    """Answers with the error of any of the partitions; None: the answer is lost."""

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]: ...

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]: ...


class ConfirmingPersister:
    """Keeps no state and confirms everything."""

    def initialize(self, group: str, asked: Initialization, /) -> Turns[Error | None]:
        del group, asked
        yield 0
        return NO_ERROR

    def delete(self, group: str, partitions: Mapping[UUID, Iterable[int]], /) -> Turns[Error | None]:
        del group, partitions
        yield 0
        return NO_ERROR
