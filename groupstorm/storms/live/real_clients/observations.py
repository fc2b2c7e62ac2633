"""Observations of real clients during a run: reports of their processes, and their requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


@dataclass(frozen=True, slots=True)
class Observation:
    time_us: int


@dataclass(frozen=True, slots=True)
class OfMember(Observation):
    member: str


@dataclass(frozen=True, slots=True)
class Row(Observation):
    """A row of the world or of the coordinator, complete as it is."""

    source: Source
    event: TracedEvent


@dataclass(frozen=True, slots=True)
class Started(OfMember):
    """The consumer is about to subscribe."""

    instance: str | None


@dataclass(frozen=True, slots=True)
class Joined(OfMember):
    """The member received the response to its JoinGroup: a generation, in which ``protocol`` was chosen."""

    member_id: str
    generation: int
    protocol: str


@dataclass(frozen=True, slots=True)
class EpochReached(OfMember):
    """The member of a consumer group received the response to its heartbeat: a new member epoch."""

    member_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Fenced(OfMember):
    """The coordinator does not have the member of a consumer group any more. ``error``: Kafka's name."""

    error: str


@dataclass(frozen=True, slots=True)
class Synced(OfMember):
    """The member received its assignment."""


@dataclass(frozen=True, slots=True)
class RebalanceSeen(OfMember):
    """A response told the member that it has to join again."""


@dataclass(frozen=True, slots=True)
class LeftUnasked(OfMember):
    """The library has sent a LeaveGroup, though nobody stops it: max.poll.interval.ms has passed."""


@dataclass(frozen=True, slots=True)
class Committed(Observation):
    """The coordinator has accepted these offsets."""

    positions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Assigned(OfMember):
    """The callback of an assignment has returned."""

    partitions: tuple[str, ...]
    duration_us: int


@dataclass(frozen=True, slots=True)
class Released(OfMember):
    """The callback of a revocation or a loss has begun. ``positions``: of partitions with processed records;
    ``first``: as in `Progressed`."""

    partitions: tuple[str, ...]
    positions: Mapping[str, int]
    first: Mapping[str, int]
    duration_us: int
    lost: bool
    closing: bool


@dataclass(frozen=True, slots=True)
class Progressed(OfMember):
    """The positions now. ``first``: the offset of the first record that was handed out."""

    positions: Mapping[str, int]
    first: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Paused(OfMember):
    """The process stands still, or works on one batch."""

    duration_us: int
    cause: str


@dataclass(frozen=True, slots=True)
class Resumed(OfMember):
    pass


@dataclass(frozen=True, slots=True)
class Crashed(OfMember):
    """SIGKILL."""


@dataclass(frozen=True, slots=True)
class Closed(OfMember):
    """``left``: a LeaveGroup was sent."""

    left: bool


@dataclass(frozen=True, slots=True)
class Failed(OfMember):
    error: str


@dataclass(frozen=True, slots=True)
class Written(Observation):
    """The ends of the logs as the broker has acknowledged them."""

    ends: Mapping[str, int]
