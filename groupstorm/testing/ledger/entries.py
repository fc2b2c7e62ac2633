"""The entries of a ledger: who wrote, processed, committed and owned records, and when; and its findings.

Clocks of several processes, and a broker that is asked now and then, leave a time uncertain. So every time is
a `Moment`, and one moment is before another only if that is sure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple


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


class Kind(StrEnum):
    """The kinds of findings. docs/ledger.md defines them."""

    LOST = "lost"
    UNPROCESSED = "not processed"
    COMMITTED_FIRST = "committed but not processed"
    TWICE = "processed twice"
    TWO_AT_ONCE = "processed by two at once"
    OUT_OF_ORDER = "out of order within a partition"
    TOO_OFTEN = "delivered too often"


#: What each kind of finding says of the records that it counts: one, and several.
MEANINGS: Final = {
    Kind.LOST: "the group has committed beyond it, and nobody has processed it",
    Kind.UNPROCESSED: "nobody has processed it, and the group has not committed beyond it",
    Kind.COMMITTED_FIRST: "the group had committed beyond it before it was processed",
    Kind.TWICE: "it was processed again",
    Kind.TWO_AT_ONCE: "an instance went on with the partition while another one had it",
    Kind.OUT_OF_ORDER: "it was processed after a record behind it, by the same instance",
    Kind.TOO_OFTEN: "it was given out more often than the share group allows",
}


class Allowed(StrEnum):
    """Whether at-least-once allows a double, or two at once.

    It allows a double if the group had not committed beyond the record when the second instance got the
    partition.
    """

    YES = "at-least-once allows it"
    NO = "at-least-once does not allow it"
    UNKNOWN = "the times are too close to tell whether at-least-once allows it"
    NEVER = "exactly-once does not allow it"
    UNNOTICED = "it had the record in hand, or could not have noticed yet that the partition had gone"


class Finding(NamedTuple):
    """A fault, or what at-least-once allows (``allowed``). ``shown_by``: the entries that show it."""

    kind: Kind
    partition: str
    offset: int
    number: int
    detail: str
    shown_by: tuple[Entry, ...]
    allowed: Allowed | None = None

    @property
    def is_fault(self) -> bool:
        return self.allowed in (None, Allowed.NO, Allowed.NEVER)
