"""Observations of real clients during a run: reports of their processes, and their requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Row(NamedTuple):
    """A row of the world or of the coordinator, complete as it is."""

    time_us: int
    source: Source
    event: TracedEvent


class Started(NamedTuple):
    """The consumer is about to subscribe."""

    time_us: int
    member: str
    instance: str | None


class Joined(NamedTuple):
    """The member received the response to its JoinGroup: a generation, in which ``protocol`` was chosen."""

    time_us: int
    member: str
    member_id: str
    generation: int
    protocol: str


class EpochReached(NamedTuple):
    """The member of a consumer group received the response to its heartbeat: a new member epoch."""

    time_us: int
    member: str
    member_id: str
    epoch: int


class Fenced(NamedTuple):
    """The coordinator does not have the member of a consumer group any more. ``error``: Kafka's name."""

    time_us: int
    member: str
    error: str


class Synced(NamedTuple):
    """The member received its assignment."""

    time_us: int
    member: str


class RebalanceSeen(NamedTuple):
    """A response told the member that it has to join again."""

    time_us: int
    member: str


class LeftUnasked(NamedTuple):
    """The library has sent a LeaveGroup, though nobody stops it: max.poll.interval.ms has passed."""

    time_us: int
    member: str


class Committed(NamedTuple):
    """The coordinator has accepted these offsets."""

    time_us: int
    positions: Mapping[str, int]


class Assigned(NamedTuple):
    """The callback of an assignment has returned."""

    time_us: int
    member: str
    partitions: tuple[str, ...]
    duration_us: int


class Released(NamedTuple):
    """The callback of a revocation or a loss has begun. ``positions``: of partitions with processed records;
    ``first``: as in `Progressed`."""

    time_us: int
    member: str
    partitions: tuple[str, ...]
    positions: Mapping[str, int]
    first: Mapping[str, int]
    duration_us: int
    lost: bool
    closing: bool


class Progressed(NamedTuple):
    """The positions now. ``first``: the offset of the first record that was handed out."""

    time_us: int
    member: str
    positions: Mapping[str, int]
    first: Mapping[str, int]


class Paused(NamedTuple):
    """The process stands still, or works on one batch."""

    time_us: int
    member: str
    duration_us: int
    cause: str


class Resumed(NamedTuple):
    time_us: int
    member: str


class Crashed(NamedTuple):
    """SIGKILL."""

    time_us: int
    member: str


class Closed(NamedTuple):
    """``left``: a LeaveGroup was sent."""

    time_us: int
    member: str
    left: bool


class Failed(NamedTuple):
    time_us: int
    member: str
    error: str


class Written(NamedTuple):
    """The ends of the logs as the broker has acknowledged them."""

    time_us: int
    ends: Mapping[str, int]


OfMember = (
    Started
    | Joined
    | EpochReached
    | Fenced
    | Synced
    | RebalanceSeen
    | LeftUnasked
    | Assigned
    | Released
    | Progressed
    | Paused
    | Resumed
    | Crashed
    | Closed
    | Failed
)
Observation = OfMember | Row | Committed | Written
