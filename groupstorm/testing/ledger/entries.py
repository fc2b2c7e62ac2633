"""What a ledger holds: who wrote, processed, committed and owned what, and when.

Clocks of several processes, and a broker that is asked now and then, leave a time uncertain. So every time is
a `Moment`, and one moment is before another only if that is sure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Moment(NamedTuple):
    """A time that is known to lie within bounds, in microseconds of one clock; both bounds belong to it."""

    earliest_us: int
    latest_us: int

    def is_before(self, other: Moment) -> bool:
        """Whether this moment is surely before the other one."""
        return self.latest_us < other.earliest_us


def exactly(time_us: int) -> Moment:
    """A moment that is known to the microsecond."""
    return Moment(time_us, time_us)


class Input(NamedTuple):
    """A numbered record that the service has to process. ``partition`` as Kafka prints it: orders-0."""

    at: Moment
    partition: str
    offset: int
    number: int


class Processing(NamedTuple):
    """An instance has processed a record. ``ended`` None: nobody has said how it ended. ``is_complete``: it
    was processed; an instance that fails in the middle has not.

    ``by``: the instance, "" if nobody says which one. Of a source that tells only the end, the bounds of
    ``begun`` reach until then.
    """

    begun: Moment
    ended: Moment | None
    partition: str
    offset: int
    by: str
    is_complete: bool

    @property
    def last(self) -> Moment:
        """The last moment at which the instance is known to have worked on the record."""
        return self.begun if self.ended is None else self.ended


class Commit(NamedTuple):
    """The group's committed offset became ``offset``; ``by``: the member's client.id, "" if the broker does
    not tell."""

    at: Moment
    partition: str
    offset: int
    by: str


class Assigned(NamedTuple):
    """An instance got a partition, or got it anew."""

    at: Moment
    partition: str
    by: str


class Started(NamedTuple):
    """An instance started: it knows nothing of what an earlier process of its name did."""

    at: Moment
    by: str


class Incident(NamedTuple):
    """Something was done to the service or to the broker. ``by``: the instance, "" for all of them."""

    at: Moment
    by: str
    what: str


Entry = Input | Processing | Commit | Assigned | Started | Incident


@dataclass(slots=True)
class History:
    """All entries of a run. ``start_us``: times are printed from there on.

    ``knows_owners``: every assignment of the group is among the entries, to the instances by their names.
    ``is_shared``: it is a share group; ``finished``: the partitions of which it is done with all records.
    """

    start_us: int
    inputs: list[Input] = field(default_factory=list)
    processings: list[Processing] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    knows_owners: bool = False
    is_shared: bool = False
    finished: frozenset[str] = frozenset()
