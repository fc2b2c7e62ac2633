"""The history of a ledger: who wrote, processed, committed and owned records, and when; and its findings.

Clocks of several processes, and a broker that is asked now and then, leave a time uncertain. So every time is
a `Moment`, and one moment is before another only if that is sure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
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

    ``followed``: the instances of which every assignment is among the entries. ``is_shared``: it is a share
    group; ``finished``: the partitions of which it is done with all records.
    """

    start_us: int
    inputs: list[Input] = field(default_factory=list)
    processings: list[Processing] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    followed: frozenset[str] = frozenset()
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
    Kind.UNPROCESSED: "nobody has processed it, and the committed offset is not beyond it",
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


@dataclass(slots=True)
class Stint:
    """The processings of one instance in one partition until it got that anew, in order of their beginnings.

    ``since``: when it got the partition or started, if that is known; else when it began its first record.
    ``back_from``: an assignment from here on may still bring the instance back to the committed offset; its
    own one, too, if the first record may have been in hand.
    """

    by: str
    partition: str
    since: Moment
    back_from: Moment
    processings: list[Processing]

    @property
    def begun(self) -> Moment:
        return self.processings[0].begun

    @property
    def ended(self) -> Moment:
        """The last moment at which the instance is known to have worked on a record of the partition."""
        return max((one.last for one in self.processings), key=lambda moment: moment.earliest_us)


class Stints:
    """The stints of a history, by partition. Processings of unknown instances are in none.

    An instance that goes on after its partition has gone to another one is still in its old stint: that is
    how it is told from one that has got the partition back.
    """

    def __init__(self, history: History, committed: Mapping[str, CommittedOffsets]) -> None:
        self._committed = committed
        self._followed = history.followed
        self._fresh: dict[tuple[str, str], list[Moment]] = defaultdict(list)
        for got in history.assigned:
            self._fresh[got.partition, got.by].append(got.at)
        for started in history.started:
            self._fresh["", started.by].append(started.at)
        for moments in self._fresh.values():
            moments.sort()
        self.by_partition: dict[str, list[Stint]] = defaultdict(list)
        self._of_processing: dict[Processing, Stint] = {}
        ordered: dict[str, list[Processing]] = defaultdict(list)
        for one in sorted(history.processings, key=lambda one: one.begun):
            if one.by:
                ordered[one.partition].append(one)
        for partition, processings in ordered.items():
            self.by_partition[partition] = self._of(partition, processings)

    def of(self, one: Processing) -> Stint | None:
        """The stint of a processing; None if nobody says whose it is."""
        return self._of_processing.get(one)

    def _since(self, partition: str, one: Processing) -> Moment:
        """When the instance got the partition, before it began this record."""
        got = [moment for moment in self._fresh.get((partition, one.by), ()) if moment.is_before(one.begun)]
        return got[-1] if got else one.begun

    def _of(self, partition: str, processings: Sequence[Processing]) -> list[Stint]:
        found: list[Stint] = []
        current: dict[str, Stint] = {}
        previous = ""
        for one in processings:
            stint = current.get(one.by)
            started = stint is None or self._got(stint.processings[-1].begun, one.begun, ("", one.by))
            if stint is None or started or self._is_fresh(stint, one, interrupted=previous != one.by):
                since = self._since(partition, one)
                in_hand = stint is not None and not started and _follows(stint.processings[-1], one)
                stint = Stint(one.by, partition, since, since if in_hand else one.begun, [])
                current[one.by] = stint
                found.append(stint)
            stint.processings.append(one)
            self._of_processing[one] = stint
            previous = one.by
        return found

    def _is_fresh(self, stint: Stint, one: Processing, interrupted: bool) -> bool:
        """Whether the instance may have got the partition since its last record.

        It finishes the batch that it has in hand, and then goes to the offset that was committed when it got
        the partition. If nobody tells its assignments, an instance that comes after another one may have got
        the partition if it begins at an offset that may have been the committed one.
        """
        last, committed = stint.processings[-1], self._committed[stint.partition]
        if got := self._got(stint.back_from, one.begun, (stint.partition, one.by)):
            if one.offset <= last.offset and not _follows(last, one):
                return True
            offsets = committed.possible_at(Moment(got[0].earliest_us, got[-1].latest_us))
            is_elsewhere = NOTHING in offsets or not _follows(last, one)
            return one.offset in offsets or (interrupted and is_elsewhere)
        if not interrupted or stint.by in self._followed:
            return False
        return one.offset in committed.possible_at(Moment(last.begun.earliest_us, one.begun.latest_us))

    def _got(self, since: Moment, until: Moment, key: tuple[str, str]) -> Sequence[Moment]:
        """The moments, between two, at which the instance may have got the partition, or started."""
        moments = self._fresh.get(key, ())
        first = bisect_left(moments, since.earliest_us, key=lambda moment: moment.latest_us)
        return [moment for moment in moments[first:] if moment.earliest_us <= until.latest_us]


def _follows(last: Processing, one: Processing) -> bool:
    """Whether an instance may have had the record in hand with its last one: the next, or the same again."""
    return last.offset + last.is_complete <= one.offset <= last.offset + 1


#: The committed offset of a group that has not committed any: every offset is beyond it.
NOTHING = -1


class CommittedOffsets:
    """The commits of one partition, in the order of their times."""

    def __init__(self, commits: Iterable[Commit] = ()) -> None:
        self._commits = sorted(commits, key=lambda one: one.at)
        self._farthest = list(accumulate((one.offset for one in self._commits), max))
        self._earliest = [one.at.earliest_us for one in self._commits]
        #: Behind each commit: the latest time that it or an earlier one may have.
        self._latest = list(accumulate((one.at.latest_us for one in self._commits), max))

    @property
    def last(self) -> Commit:
        """The last commit of a partition that has some."""
        return self._commits[-1]

    def first_beyond(self, offset: int) -> Commit | None:
        """The first commit that says that the record at ``offset`` is done."""
        found = bisect_right(self._farthest, offset)
        return self._commits[found] if found < len(self._commits) else None

    def possible_at(self, when: Moment) -> Sequence[int]:
        """The committed offsets that the group may have had within ``when``, the oldest first."""
        until = bisect_right(self._earliest, when.latest_us)
        first = until
        while first and self._latest[first - 1] >= when.earliest_us:
            first -= 1
        before = self._commits[first - 1].offset if first else NOTHING
        return (before, *(one.offset for one in self._commits[first:until]))

    def last_before(self, when: Moment) -> Commit | None:
        """The last commit that is surely before ``when``."""
        sure = [one for one in self._commits if one.at.is_before(when)]
        return sure[-1] if sure else None


def by_partition(commits: Iterable[Commit]) -> Mapping[str, CommittedOffsets]:
    """A partition without commits has an empty one."""
    found: dict[str, list[Commit]] = defaultdict(list)
    for one in commits:
        found[one.partition].append(one)
    made: dict[str, CommittedOffsets] = defaultdict(CommittedOffsets)
    made.update((partition, CommittedOffsets(those)) for partition, those in found.items())
    return made
