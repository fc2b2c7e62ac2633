"""The lanes of one group as changes over time, kept until the end of the trace is known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.report.lanes.members import Activity, GroupLanes, Member, Row
from groupstorm.trace.rows import TracedEvent

T = TypeVar("T")


class Track(Generic[T]):
    """One value that changes over time."""

    def __init__(self, first: T) -> None:
        self._values = [first]  # from ever
        self._times_us: list[int] = []  # when the second and the later ones began

    def set(self, value: T, now_us: int) -> None:
        """The value from now on. Of several at one instant the last one counts."""
        if self._times_us and self._times_us[-1] == now_us:
            self._times_us.pop()
            self._values.pop()
        if self._values[-1] != value:
            self._times_us.append(now_us)
            self._values.append(value)

    def at(self, time_us: int) -> T:
        return self._values[bisect_right(self._times_us, time_us)]

    def changes(self, from_us: int, to_us: int) -> Iterator[tuple[int, T, T]]:
        """The changes from ``from_us`` until before ``to_us``: when, the value before, the value after."""
        index = bisect_right(self._times_us, from_us - 1)
        while index < len(self._times_us) and self._times_us[index] < to_us:
            yield self._times_us[index], self._values[index], self._values[index + 1]
            index += 1

    def spells(self, from_us: int, to_us: int) -> Iterator[tuple[T, int]]:
        """The values of this time, each with how long it lasted."""
        begun_us, value = from_us, self.at(from_us)
        for time_us, _, after in self.changes(from_us + 1, to_us):
            yield value, time_us - begun_us
            begun_us, value = time_us, after
        yield value, max(0, to_us - begun_us)


class Recording:
    """Takes the rows of one group beside its explanation (`groupstorm.explain.explanation.Reader`).

    ``state``: the group's; "" if it does not exist, None if that is not known. ``unowned``: how many
    partitions have no owner; None if that is not counted, -1 if it is not known.
    """

    def __init__(self) -> None:
        self.lanes = GroupLanes()
        self.members: dict[str, Track[Activity]] = {}
        self.state: Track[str | None] = Track("")
        self.unowned: Track[int | None] = Track(None)
        #: Member -> the time without an owner of partitions that it had owned, summed over partitions.
        self.left_unowned_us: dict[str, int] = {}
        self._now_us = 0
        self._figures: FiguresAccumulator | None = None

    def add(self, row: Row, event: TracedEvent, figures: FiguresAccumulator) -> None:
        """Take the next row; ``figures`` have taken those before it."""
        now_us = row["time_us"]
        if now_us != self._now_us:
            self.finish()
        self._figures, self._now_us = figures, now_us
        if row["event"] == "group_state_changed" and self.lanes.state is None:
            before = row["previous_state"]
            self.state = Track(None if before == "unknown" else before)
        touched = self.lanes.add(row, event)
        self.state.set(self.lanes.state, now_us)
        for member in touched:
            activity = member.activity(self.lanes.knows_owners)
            track = self.members.get(member.name)
            if track is None:
                track = self.members[member.name] = Track(_before(member))
            track.set(activity, now_us)

    def finish(self) -> None:
        """All rows of this instant were taken."""
        unowned = None if self._figures is None else self._figures.unowned_partitions()
        self.unowned.set(unowned if self.lanes.knows_owners or unowned is None else -1, self._now_us)

    def close_gap(self, gap: ClosedGap) -> None:
        """A time without an owner is over."""
        if gap.old_owner is not None:
            before_us = self.left_unowned_us.get(gap.old_owner, 0)
            self.left_unowned_us[gap.old_owner] = before_us + gap.gap_us


def _before(member: Member) -> Activity:
    """The activity of a member before its first row."""
    return Activity.GONE if member.is_new else Activity.UNKNOWN
