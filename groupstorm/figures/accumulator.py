"""One pass over the rows of a group, or of all groups of a trace: each row goes to the rules that read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from groupstorm.figures.table import Figures
from groupstorm.figures.totals import Totals, totals_of
from groupstorm.history.coordinator_view import CoordinatorView
from groupstorm.history.gaps import OwnershipListener
from groupstorm.history.group_sums import GroupSums
from groupstorm.history.lag import LagCurve
from groupstorm.history.records import NANO
from groupstorm.history.row_rules import RowRules
from groupstorm.history.unknown import OWNERSHIP, figures_from_us
from groupstorm.problems import InputError
from groupstorm.trace.rows import TracedEvent, TraceEntry, read_row
from groupstorm.trace.schema import Source

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER


class FiguresAccumulator:
    """Takes the rows of one group, in the trace's order, and computes its figures.

    It needs memory for partitions, members and single gaps, not for rows. It is a `TraceSink`: a storm
    hands it every event as it happens; `add_row` takes a row as it was read from a file.

    ``from_us``: the figures count from this time on; the rows before it say who owned what until then. 0: as
    the scenario says (`figures_from`), or from the first row on. ``listener``: hears of each interval and
    gap as its row is taken (`GapReasons`).
    """

    def __init__(self, from_us: int = 0, listener: OwnershipListener | None = None) -> None:
        #: From when on figures count; None from then on.
        self._from_us: int | None = from_us or None
        self._first_us: int | None = None
        self._now_us = 0
        self._sums = GroupSums(listener)
        self._rules = RowRules(self._sums, {} if listener is None else listener.handlers)

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        """Take one event that happened ``time_us`` microseconds after the trace began."""
        self.add_all([(time_us, source, event)])

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        """Take several, in their order."""
        if self._first_us is None:
            entries = iter(entries)
            first = next(entries, None)
            if first is None:
                return
            self._first_us = first[0]
            if self._from_us is None:
                self._from_us = figures_from_us(first[2])
            entries = chain((first,), entries)
        if self._from_us is not None:
            entries = self._up_to_window(entries)
        sums, rules = self._sums, self._rules
        settling = sums.settling
        now_us = self._now_us
        for time_us, source, event in entries:
            if time_us != now_us:
                if not (settling.rejoining or settling.settled or settling.awaited):
                    sums.instant_over()
                now_us = self._now_us = time_us
            if source is _MEMBER:
                rules.member_rows = True
            kind, handlers = type(event), rules.handlers  # a row may choose others for those behind it
            if kind in handlers:
                for handler in handlers[kind]:
                    handler(time_us, event)

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Take one row of a trace, nulls left out or not; an event that is not known changes nothing.

        Raises InputError naming the row if it does not fit the schema.
        """
        entry = read_row(row, self._now_us)
        if entry is not None:
            self.add(*entry)

    def count_from(self, from_us: int) -> None:
        """Figures count from ``from_us`` on, a time after all rows so far; what these rows said of owners
        stays. 0: all rows, whatever the scenario says."""
        self._from_us = from_us

    def unowned_now(self, now_us: int) -> Mapping[str, int] | None:
        """Partition -> since when it has had no owner, at this instant; None if it is not known."""
        return None if OWNERSHIP in self._sums.unknown.sentences else self._sums.ownership.unowned_now(now_us)

    def waiting_records(self, now_us: int) -> float | None:
        """Count the records that wait now, no earlier than the last row; None if it is not known."""
        lag = self._lag()
        return None if lag is None else lag.processed_and_waiting(now_us)[1] / NANO

    def recent_lag_peak(self, now_us: int) -> float | None:
        """The most records that waited since the last call, up to this instant, which is no earlier than the
        last row; None if it is not known."""
        lag = self._lag()
        return None if lag is None else lag.recent_peak(now_us) / NANO

    def has_records(self, partition: str) -> bool:
        """Whether records arrive in the partition."""
        return self._sums.ownership.model.log(partition).rate > 0

    def oldest_record_us(self, now_us: int, partitions: Iterable[str] | None = None) -> int | None:
        """Return the time that the oldest record has waited, of all partitions or of these alone."""
        lag = self._lag()
        return None if lag is None else lag.oldest_now_us(now_us, partitions)

    @property
    def view(self) -> CoordinatorView | None:
        """Names members if the rows of the coordinator say who owns what; None if those of members do."""
        return self._sums.settling.view

    def has_revoked(self, member_id: str) -> bool:
        """Whether the member has given partitions up since its last SyncGroup answer: if it joins again, that
        is the second half of a cooperative rebalance (KIP-429)."""
        return member_id in self._sums.settling.revoked_ids

    @property
    def owned_from_us(self) -> int | None:
        """From when on partitions have to have owners; None if no row says so yet."""
        return self._sums.ownership.begun_us

    def owners(self, partition: str) -> list[str] | None:
        """The members that own a partition, the first one first; None if there is no such partition."""
        found = self._sums.ownership.partitions.get(partition)
        return None if found is None else [owner.member for owner in found.owners]

    def unowned_partitions(self) -> int | None:
        """Count partitions without an owner after the last row; None if the time without an owner does not
        count: before partitions have to have owners, and while the group does not exist."""
        return self._sums.ownership.unowned_count

    def _lag(self) -> LagCurve | None:
        return self._sums.ownership.lag if self._sums.has_member_rows else None

    def close(self) -> None:
        """The last row was added: `figures` may be called."""

    def figures(self, end_us: int | None = None) -> Figures:
        """The figures of the rows so far, once: the accumulator takes no more rows after it.

        ``end_us``: where the trace ends, if later than this group's last row.
        """
        return self.totals(end_us).figures()

    def totals(self, end_us: int | None = None) -> Totals:
        """Return the sums that `figures` divides and rounds."""
        end_us = self._now_us if end_us is None else end_us
        if self._from_us is not None:
            self._begin_window(min(self._from_us, end_us))
        return totals_of(self._sums, self._first_us, end_us)

    def _up_to_window(self, entries: Iterable[TraceEntry]) -> Iterator[TraceEntry]:
        """The entries, with the beginning of the window before the first that lies in it."""
        for entry in entries:
            if self._from_us is not None and entry[0] >= self._from_us:
                self._begin_window(self._from_us)
            yield entry

    def _begin_window(self, from_us: int) -> None:
        self._from_us = None
        if self._first_us is not None:
            self._first_us = max(self._first_us, from_us)
        self._sums.begin_window(from_us)


class Window(NamedTuple):
    """A part of a trace: figures count from ``from_us`` on; later than ``to_us`` is no row (None: all)."""

    from_us: int = 0
    to_us: int | None = None

    def holds(self, time_us: int) -> bool:
        """Whether a row of that time is read: earlier rows are, too, for who owned what until then."""
        return self.to_us is None or time_us <= self.to_us

    def end(self, last_us: int) -> int:
        """Where a trace ends whose last row has the time ``last_us``."""
        return last_us if self.to_us is None else min(last_us, self.to_us)

    def counted_from(self, first: TracedEvent | None) -> int:
        """Return when the figures of a group begin to count whose first row this is."""
        return self.from_us or (first is not None and figures_from_us(first)) or 0

    def check(self, trace: object, counted_from_us: int, end_us: int) -> None:
        """Raise InputError if a trace or a run ends before its figures begin to count."""
        if end_us < counted_from_us:
            name = "--from" if self.from_us else "figures_from"
            ends = f"it ends at {end_us / 1_000_000:,.3f} s, before its figures count"
            from_s = f"{name}: {counted_from_us / 1_000_000:,g} s"
            earlier = "name an earlier time there" + (", or with --from" if self is not WHOLE else "")
            raise InputError(f"{trace}: nothing is counted: {ends} ({from_s}): {earlier}")


WHOLE = Window()
