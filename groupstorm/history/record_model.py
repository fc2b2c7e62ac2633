"""The model of records: where the logs of partitions end, and where their owners stand, between two rows.

`docs/figures.md` ("The model of records") is the definition. Rates are records per 1,000 seconds and times
microseconds, so that a position that grows is a whole number of billionths of a record at every microsecond.
"""

from __future__ import annotations

#: Parts of a record. A rate of one record per 1,000 seconds is one part a microsecond.
NANO = 1_000_000_000
#: The first row of a trace has rates per second.
THOUSAND = 1000


class Line:
    """A position that grows: whole records ``position`` at ``from_us``, from then on by ``rate``. It never
    changes, and is the line of one owner or log: no other line equals it."""

    __slots__ = ("from_us", "position", "rate")

    position: int
    from_us: int
    rate: int

    def __init__(self, position: int, from_us: int, rate: int) -> None:
        self.position = position
        self.from_us = from_us
        self.rate = rate

    def exact(self, now_us: int) -> int:
        """The position at ``now_us``, in billionths of a record."""
        return self.position * NANO + self.rate * (now_us - self.from_us)

    def base(self) -> int:
        """Return the value that `exact` would have at time 0 if the line had always been this one."""
        return self.position * NANO - self.rate * self.from_us


class RecordModel:
    """The logs of one group's partitions, and how fast an owner processes if no row has said so.

    ``record_rate``, ``process_rate``: those of the trace's first row, in records per partition and second.
    """

    def __init__(self, record_rate: int, process_rate: int) -> None:
        self.process_rate = process_rate * THOUSAND
        self._from_the_start = Line(0, 0, record_rate * THOUSAND)
        self._logs: dict[str, Line] = {}

    def log(self, partition: str) -> Line:
        """The present end of a partition's log."""
        return self._logs.get(partition, self._from_the_start)

    def change_log(self, partition: str, log: Line) -> None:
        """The log ends there from now on."""
        self._logs[partition] = log

    def forget_log(self, partition: str) -> None:
        """The partition was deleted: one of its name that is created later has the first row's rate."""
        self._logs.pop(partition, None)

    def position(self, partition: str, owner: Line, now_us: int) -> int:
        """The offset that an owner on the line ``owner`` has reached: at most the log's end."""
        reached = min(self.log(partition).exact(now_us), owner.exact(now_us))
        return max(owner.position, reached // NANO)
