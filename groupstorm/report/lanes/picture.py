"""The lanes of a group as text: a column for each slice of time, a line for each member."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from groupstorm.explain.explanation import Explanation
from groupstorm.figures.accumulator import FiguresAccumulator
from groupstorm.history.gaps import ClosedGap
from groupstorm.report.lanes.members import Activity, GroupLanes, Member, Row
from groupstorm.visible import visible, wrapped

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


class Recording(GroupLanes):
    """Takes the rows of one group beside its explanation.

    ``activities``: of each member. ``states``: the group's. ``unowned``: how many partitions have no owner;
    None if that is not counted, -1 if it is not known.
    """

    def __init__(self) -> None:
        super().__init__()
        self.activities: dict[str, Track[Activity]] = {}
        self.states: Track[str | None] = Track("")
        self.unowned: Track[int | None] = Track(None)
        #: Member -> the time without an owner of partitions that it had owned, summed over partitions.
        self.left_unowned_us: dict[str, int] = {}

    def add(self, row: Row, figures: FiguresAccumulator) -> None:
        now_us = row["time_us"]
        if row["event"] == "group_state_changed" and self.state is None:
            before = row["previous_state"]
            self.states = Track(None if before == "unknown" else before)
        touched = self.take(row, figures)
        self.states.set(self.state, now_us)
        for member in touched:
            activity = member.activity(self.knows_owners)
            track = self.activities.get(member.name)
            if track is None:
                track = self.activities[member.name] = Track(_before(member))
            track.set(activity, now_us)
        unowned = figures.unowned_partitions()
        self.unowned.set(unowned if self.knows_owners or unowned is None else -1, now_us)

    def gap_closed(self, gap: ClosedGap) -> None:
        """A time without an owner is over."""
        if gap.old_owner is not None:
            before_us = self.left_unowned_us.get(gap.old_owner, 0)
            self.left_unowned_us[gap.old_owner] = before_us + gap.gap_us


def _before(member: Member) -> Activity:
    """The activity of a member before its first row."""
    return Activity.GONE if member.is_new else Activity.UNKNOWN


#: More members than this are counted, not drawn.
MEMBERS_MAX: Final = 40
_LABEL_MAX: Final = 28
_TICK_MIN: Final = 10
_AXIS, _GROUP, _UNOWNED = "seconds", "group", "un-owned"

ENDS: Final = "x"
#: A column shows the first of these that the member did in it.
ACTIVITIES: Final[Mapping[Activity, str]] = {
    Activity.PAUSED: "p",
    Activity.JOINS: "j",
    Activity.REJOINS: "+",
    Activity.IDLE: "-",
    Activity.UNKNOWN: "?",
    Activity.OWNS: "#",
    Activity.GONE: " ",
}
#: A column shows the first of these states that the group had in it.
STATES: Final[Mapping[str | None, str]] = {
    "PreparingRebalance": "p",
    "CompletingRebalance": "c",
    "Assigning": "a",
    "Reconciling": "r",
    "Empty": "e",
    None: "?",
    "Stable": "=",
    "": " ",
}


class Line(NamedTuple):
    """One line: ``cells`` has a character for each column."""

    label: str
    cells: str


@dataclass(frozen=True, slots=True)
class Columns:
    """The time of a picture, cut into ``count`` columns."""

    from_us: int
    to_us: int
    count: int

    def begin_us(self, column: int) -> int:
        return self.from_us + (self.to_us - self.from_us) * column // self.count

    def column(self, time_us: int) -> int:
        return (time_us - self.from_us) * self.count // max(1, self.to_us - self.from_us)

    def values(self, track: Track[T]) -> Iterator[dict[T, int]]:
        """Column -> the values that the track has in it, each with how long it lasts. The last column has the
        end of the time, too."""
        for column in range(self.count):
            begin_us, end_us = self.begin_us(column), self.begin_us(column + 1)
            found: dict[T, int] = {}
            for value, lasted_us in track.spells(begin_us, end_us + (column == self.count - 1)):
                found[value] = found.get(value, 0) + lasted_us
            yield found

    def ends(self, track: Track[Activity]) -> set[int]:
        """The columns in which a member ends."""
        return {
            min(self.column(time_us), self.count - 1)
            for time_us, _, after in track.changes(self.from_us, self.to_us + 1)
            if after is Activity.GONE
        }


class Picture(NamedTuple):
    """``title``, the ``lines``, and the ``notes`` below: what the characters mean, and what is left out."""

    title: str
    lines: Sequence[Line]
    notes: Sequence[str]


def picture(
    one: Explanation,
    recording: Recording,
    width: int,
    from_us: int = 0,
    only: Callable[[Member], bool] | None = None,
) -> Picture:
    """A group's picture of at most ``width`` columns, from ``from_us`` on, or from its first row if that is
    later. ``only``: the members that are drawn."""
    history = one.history
    members = [member for member in recording.members.values() if only is None or only(member)]
    drawn = _most_concerned(members, one, recording)
    labels = [_cut(visible(member.label)) for member in drawn]
    label_width = max(map(len, (_AXIS, _GROUP, _UNOWNED, *labels)))
    from_us = max(from_us, min(history.first_us, history.to_us))
    columns = Columns(from_us, max(history.to_us, from_us + 1), max(1, width - label_width - 2))
    states = _cells(columns, recording.states, STATES)
    unowned, scale = _unowned(columns, recording.unowned)
    lines = [Line(_AXIS, _axis(columns)), Line(_GROUP, states), Line(_UNOWNED, unowned)]
    for member, label in zip(drawn, labels, strict=True):
        track = recording.activities[member.name]
        cells, ends = _cells(columns, track, ACTIVITIES), columns.ends(track)
        cells = "".join(ENDS if number in ends else cell for number, cell in enumerate(cells))
        lines.append(Line(label, cells))
    seconds = (columns.to_us - columns.from_us) / columns.count / 1e6
    title = (
        f"{history.group}: {columns.from_us / 1e6:g} s to {columns.to_us / 1e6:g} s, "
        f"{seconds:.3g} s in a column"
    )
    if scale and history.figures is not None and history.figures.unowned_partition_seconds is None:
        scale += "; a lower bound: more of the time without an owner is not known"
    notes = [*_legend(lines), scale, *_left_out(members, drawn, recording), *history.missing.values()]
    padded = [Line(f"{label:{label_width}}", cells.rstrip()) for label, cells in lines]
    return Picture(title, padded, [line for note in notes if note for line in wrapped(note, width)])


def _most_concerned(members: Sequence[Member], one: Explanation, recording: Recording) -> list[Member]:
    """All, or the `MEMBERS_MAX` that cost the group or lost the most time, in the order in which they came.

    A member's rebalances count with their length and the times without an owner that they ended. What a
    member lost is the time in which it stood still or joined without partitions, and the time without an
    owner of the partitions that it had owned.
    """
    if len(members) <= MEMBERS_MAX:
        return [*members]
    begun_us: dict[str, int] = {}
    for rebalance in one.history.rebalances:
        cost_us = rebalance.lasted_us + rebalance.unowned_us
        begun_us[rebalance.culprit] = begun_us.get(rebalance.culprit, 0) + cost_us
    history = one.history

    def concern_us(member: Member) -> int:
        lost_us = sum(
            lasted_us
            for activity, lasted_us in recording.activities[member.name].spells(
                history.from_us, history.to_us
            )
            if activity in (Activity.PAUSED, Activity.JOINS)
        )
        begun = begun_us.get(member.name, begun_us.get(member.client, 0))
        return begun + lost_us + recording.left_unowned_us.get(member.name, 0)

    chosen = set(sorted(members, key=lambda member: (-concern_us(member), member.name))[:MEMBERS_MAX])
    return [member for member in members if member in chosen]


def _left_out(members: Sequence[Member], drawn: Sequence[Member], recording: Recording) -> Iterator[str]:
    rest = len(members) - len(drawn)
    if rest:
        left = set(members) - set(drawn)
        owners = sum(
            member.activity(recording.knows_owners) in (Activity.OWNS, Activity.REJOINS) for member in left
        )
        yield (
            f"{rest} more members, {owners} of them own partitions at the end; drawn are those that cost "
            "the group or lost the most time (--member draws one)"
        )


def _cells(columns: Columns, track: Track[T], glyphs: Mapping[T, str]) -> str:
    """The first value of each column, in capitals if it lasts for more than half of the column."""
    cells = []
    for found in columns.values(track):
        value = next(value for value in glyphs if value in found)
        is_most = found[value] * 2 > sum(found.values())
        cells.append(glyphs[value].upper() if is_most else glyphs[value])
    return "".join(cells)


def _unowned(columns: Columns, track: Track[int | None]) -> tuple[str, str]:
    """The most partitions without an owner in each column, and what the digits mean."""
    found = [[one for one in values if one is not None] for values in columns.values(track)]
    peak = max((one for values in found for one in values), default=0)
    cells = "".join(_digit(values, peak) for values in found)
    if peak <= 0:
        return cells, ""
    scale = "un-owned: the most partitions without an owner in the column"
    return cells, scale if peak <= 9 else f"{scale}, 9: {peak}, 1: at most {peak // 9}"


def _digit(values: Sequence[int], peak: int) -> str:
    """Blank: not counted; "?": not known; a dot: none."""
    if not values:
        return " "
    if max(values) <= 0:
        return "?" if -1 in values else "."
    return str(max(values) if peak <= 9 else -(-9 * max(values) // peak))


def _axis(columns: Columns) -> str:
    """Ticks at round seconds, with the number behind the tick."""
    lasted_us = columns.to_us - columns.from_us
    step_us = _round_step_us(lasted_us * _TICK_MIN // columns.count)
    cells = [" "] * columns.count
    for time_us in range(-(-columns.from_us // step_us) * step_us, columns.to_us, step_us):
        column, text = columns.column(time_us), f"|{time_us / 1e6:g}"
        if column + len(text) <= columns.count:
            cells[column : column + len(text)] = text
    return "".join(cells)


def _round_step_us(least_us: int) -> int:
    """1, 2 or 5 times a power of ten, from ten microseconds on."""
    step_us = 10
    while True:
        for factor in (1, 2, 5):
            if step_us * factor >= least_us:
                return step_us * factor
        step_us *= 10


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    """The meanings of the characters that are drawn."""
    _, states, _, *members = lines
    meanings = {ENDS: "ends", **{glyph: str(activity) for activity, glyph in ACTIVITIES.items()}}
    if named := _named(meanings, members):
        yield f"members: {named}; blank: {Activity.GONE}"
    if named := _named({glyph: state or "unknown" for state, glyph in STATES.items()}, [states]):
        yield f"group: {named}"
    yield "A column shows the first of these that it has, in capitals if for more than half of its time."


def _named(meanings: Mapping[str, str], lines: Iterable[Line]) -> str:
    drawn = set("".join(line.cells for line in lines).lower()) - {" "}
    return ", ".join(f"{glyph} {meaning}" for glyph, meaning in meanings.items() if glyph in drawn)


def _cut(label: str) -> str:
    """Names differ at their ends."""
    return label if len(label) <= _LABEL_MAX else ".." + label[2 - _LABEL_MAX :]
