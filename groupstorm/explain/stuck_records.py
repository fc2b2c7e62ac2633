"""Records that nobody gets past: a partition whose owners begin at one position again and again, or stand
still; and records that were processed and had no commit.

Rows of members have positions (`docs/trace.md`); logs do not, so an imported trace has no such record.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.rebalances import Row

#: Rows that end an owner: if the next one begins where this one began, the record there may be why.
_ENDS = frozenset({"member_crashed", "partitions_lost"})
_POSITIONS = _ENDS | {
    "partitions_revoked",
    "partitions_assigned",
    "processing_rates_changed",
    "member_resumed",
}


@dataclass(slots=True)
class StuckRecord:
    """Owners of ``partition`` begin or stand at ``position`` although there are records.

    ``stood_us``: for how long in all, as the rows of processing rates tell. ``ends``: rows with which owners
    ended that had begun there, with the member. ``member``: who stood there last.
    """

    partition: str
    position: int
    first: Row
    stood_us: int = 0
    since_us: int | None = None
    member: str = ""
    ends: list[tuple[str, Row]] = field(default_factory=list)


class StuckRecords:
    """Takes the rows of one group, in their order."""

    def __init__(self) -> None:
        #: By partition: where its owner began, and where it stands.
        self._begun: dict[str, StuckRecord] = {}
        self._standing: dict[str, StuckRecord] = {}
        self._worst: dict[str, StuckRecord] = {}
        self._longest: dict[str, StuckRecord] = {}

    def add(self, row: Row, figures: FiguresAccumulator) -> None:
        if row["event"] not in _POSITIONS or "positions" not in row:
            return
        stands = "rates" in row and not any(row["rates"])  # one record holds up all partitions of its owner
        for partition, position in zip(row["partitions"], row["positions"], strict=True):
            if figures.has_records(partition):
                self._stand(partition, position, stands, row)
                self._begin_or_end(partition, position, row)

    def forget(self) -> None:
        """Drop what owners did so far."""
        for records in (self._begun, self._standing, self._worst, self._longest):
            records.clear()

    def repeated(self) -> list[StuckRecord]:
        """The position of each partition at which most owners ended after they had begun there; the worst
        first."""
        for one in self._begun.values():
            _keep(self._worst, one, len(one.ends))
        return sorted(self._worst.values(), key=lambda one: (-len(one.ends), one.first["seq"]))

    def stood(self) -> list[StuckRecord]:
        """The position of each partition at which owners stood longest; the longest first."""
        for one in self._standing.values():
            _keep(self._longest, one, one.stood_us)
        return sorted(self._longest.values(), key=lambda one: (-one.stood_us, one.first["seq"]))

    def _stand(self, partition: str, position: int, stands: bool, row: Row) -> None:
        one = self._standing.get(partition)
        if one is not None and one.since_us is not None:
            one.stood_us += row["time_us"] - one.since_us
            one.since_us = None
        if one is None or one.position != position:
            if one is not None:
                _keep(self._longest, one, one.stood_us)
            one = self._standing[partition] = StuckRecord(partition, position, row)
        if stands:
            one.since_us, one.member = row["time_us"], row["member"]

    def _begin_or_end(self, partition: str, position: int, row: Row) -> None:
        one = self._begun.get(partition)
        if row["event"] == "partitions_assigned" and (one is None or one.position != position):
            if one is not None:
                _keep(self._worst, one, len(one.ends))
            self._begun[partition] = StuckRecord(partition, position, row)
        elif one is not None and row["event"] in _ENDS:
            one.ends.append((row["member"], row))


def _keep(worst: dict[str, StuckRecord], one: StuckRecord, how_bad: int) -> None:
    before = worst.get(one.partition)
    if before is None or how_bad > max(len(before.ends), before.stood_us):
        worst[one.partition] = one


#: The rows of `Uncommitted` that are kept: the first ones, and the last.
_ROWS_MAX: Final = 4


class _GivenUp(NamedTuple):
    """A row with which a member gave up a partition at ``position``, with so many records since its last
    commit."""

    member: str
    row: Row
    position: int
    records: int


@dataclass(slots=True)
class Uncommitted:
    """Processed records that had no commit when onPartitionsRevoked was called, by partition; and the members
    that gave these partitions up.

    A commit may still come within the callback (Kafka Streams): if the next owner begins where the old one
    stopped, there was one.
    """

    records: Counter[str] = field(default_factory=Counter)
    members: dict[str, set[str]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    _open: dict[str, _GivenUp] = field(default_factory=dict)
    #: Where the present owner began: records before it are others', if nothing was committed.
    _begun: dict[str, int] = field(default_factory=dict)

    def add(self, member: str, row: Row) -> None:
        """Take a row with which ``member`` gives partitions up."""
        both = zip(row.get("positions", ()), row.get("committed", ()), strict=False)
        for partition, (position, committed) in zip(row["partitions"], both, strict=False):
            self._settle(partition, None)
            if position is None or committed is None:
                continue
            since = max(committed, self._begun.get(partition, 0))
            if since < position:
                self._open[partition] = _GivenUp(member, row, position, position - since)

    def taken(self, row: Row) -> None:
        """Take a row with which the next owner begins."""
        for partition, position in zip(row["partitions"], row.get("positions", ()), strict=False):
            self._settle(partition, position)
            self._begun[partition] = position or 0

    def finish(self) -> None:
        """Count what nobody has taken over until the end."""
        for partition in [*self._open]:
            self._settle(partition, None)

    def _settle(self, partition: str, begins: int | None) -> None:
        found = self._open.pop(partition, None)
        if found is None or begins == found.position:
            return  # another position may be further on, after a reset to the log's end
        self.records[partition] += found.records
        self.members.setdefault(found.member, set()).add(partition)
        if not any(one is found.row for one in self.rows):
            del self.rows[_ROWS_MAX - 1 :]
            self.rows.append(found.row)
