"""The interface of a source to an import: observations, the places of its lines, and counts.

An observation is the content of one line, before it is known how the logs go together; topics may have ids in
it, which brokers log and write in place of names (KIP-848).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, tzinfo
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID

from groupstorm.imports.lines import HEAD_BYTES, Log, LogFile, open_files
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.times import DAY_US, Instant, completed, day_order, in_year, to_utc_us

#: The kind of lines and records that are understood, and change nothing.
NOTED: Final = "noted"
#: The field of the line by which a client assigns its partitions itself, and of its later ones.
BY_HAND: Final = "by_hand"
#: The field of an observation whose time is a bound: a `TimeRule`.
TIME_RULE: Final = "time_rule"
#: The field of an observation that names the pod or container whose log the line is of.
POD: Final = "pod"


class TimeRule(NamedTuple):
    """``bound``: "earliest" or "latest", what an observation's time is. ``sentence``: by which rule."""

    bound: str
    sentence: str


class Observation(NamedTuple):
    """``time_us``: since 1970, on the log's own clock as UTC. ``source`` and ``line``: the log, by its
    number, and the line in it. ``fields``: what stood in the template's holes and in the prefix of the
    message: texts, numbers, and lists and dicts of them. Only such values can be put on disk while logs are
    read (`spill`). ``order``: its place among the observations of all logs, once it is known."""

    time_us: int
    source: int
    line: int
    kind: str
    group: str
    fields: dict[str, Any]
    order: int = 0


#: Fields that hold partitions.
_PARTITIONS: Final = ("partitions", "revoking")
_UUID_BYTES: Final = 16


def topic_id(text: str) -> UUID | None:
    """A topic id as Kafka prints it (Uuid.toString); None if the text is none."""
    try:
        data = urlsafe_b64decode(f"{text}==")
    except ValueError:  # no Base64, or no ASCII
        return None
    return UUID(bytes=data) if len(data) == _UUID_BYTES else None


def topics_in(one: Observation) -> set[str]:
    """The topics of an observation's partitions: names or ids, as the observation has them."""
    return {
        partition.rpartition("-")[0]
        for name in _PARTITIONS
        if isinstance(one.fields.get(name), list)
        for partition in one.fields[name]
    }


def with_topic_names(one: Observation, names: Mapping[str, str]) -> Observation:
    """The observation with the names of the topics whose ids are known. ``names``: by topic id."""
    if not names:
        return one
    changed: dict[str, Any] = {
        name: _named(one.fields[name], names)
        for name in _PARTITIONS
        if isinstance(one.fields.get(name), list)
    }
    if isinstance(one.fields.get("targets"), dict):
        changed["targets"] = {
            member_id: _named(partitions, names) for member_id, partitions in one.fields["targets"].items()
        }
    return one._replace(fields={**one.fields, **changed}) if changed else one


def _named(partitions: Sequence[str], names: Mapping[str, str]) -> list[str]:
    named = []
    for partition in partitions:
        topic, dash, number = partition.rpartition("-")
        named.append(f"{names.get(topic, topic)}{dash}{number}")
    return named


#: Different shapes of lines that are remembered because they were not understood.
SHAPES_MAX: Final = 1_000
#: Characters of a line that are shown if it was not understood.
_SHOWN_MAX: Final = 200


class LogSource(ABC):
    """One log, dump, segment or pasted output. After `observations`, the counts say what it held."""

    #: The unit that `lines` counts, in messages.
    unit: ClassVar[str] = "line"

    def __init__(self, log: Log, number: int, tz: tzinfo = UTC, day: date | None = None) -> None:
        self.log = log
        self.number = number
        self.clock = LogClock(log, tz, day)
        self.lines = 0
        #: Lines that became observations, and lines of Kafka's that are not understood.
        self.understood = 0
        self.not_understood = 0
        #: Shape of a line -> how many, the first of them, and its place.
        self.shapes: dict[str, tuple[int, str, str]] = {}
        #: Lines that say something but when: there was no time in them or before them.
        self.untimed = 0
        self.writers: set[Writer] = set()
        self.first_us: int | None = None
        #: The damage in the source: one sentence each.
        self.damage: list[str] = []
        #: Topic id, as Kafka prints it -> name, as far as the source says it.
        self.topic_names: dict[str, str] = {}
        self._starts: list[int] = []
        self._files: list[str] = []

    @abstractmethod
    def observations(self) -> Iterator[Observation]:
        """Yield what the source says, in its own order. Raises InputError if it cannot be read."""

    @property
    def newest_first(self) -> bool:
        """Whether the source's times go down."""
        return False

    def place(self, line: int) -> str:
        """``file:line`` of a line that an observation names."""
        index = bisect_left(self._starts, line) - 1
        return f"{self._files[index]}:{line - self._starts[index]}"

    def files(self) -> Iterator[LogFile]:
        """The files of the log, one after the other. A damaged one ends early, and `damage` says where."""
        for file in open_files(self.log):
            self._starts.append(self.lines)
            self._files.append(file.name)
            yield file
            if file.damage:
                read = self.lines - self._starts[-1]
                until = f"read up to {self.unit} {read:,}" if read else "nothing of it read"
                self.damage.append(f"{file.name}: {file.damage}: {until}")

    def pieces(self, file: LogFile) -> Iterator[bytes]:
        """The lines of a file, each of which counts; a long one comes in pieces."""
        for number, piece in file.lines():
            self.lines = self._starts[-1] + number
            yield piece

    def pieces_with(self, file: LogFile, anchors: Collection[bytes]) -> Iterator[bytes]:
        """As `pieces`, but only lines that hold one of ``anchors``, and the indented ones behind them."""
        begun = self._starts[-1]
        for piece in file.lines_with(anchors):
            self.lines = begun + file.line
            yield piece
        self.lines = begun + file.line

    def see_time(self, time_us: int) -> None:
        self.first_us = time_us if self.first_us is None else min(time_us, self.first_us)

    def count_not_understood(self, text: str, shape: str) -> None:
        """A line that looks like Kafka's, and says nothing that groupstorm knows."""
        self.not_understood += 1
        count, first, place = self.shapes.get(shape, (0, text[:_SHOWN_MAX], ""))
        if count or len(self.shapes) < SHAPES_MAX:
            self.shapes[shape] = count + 1, first, place or self.place(self.lines)


def shapes_of(sources: Iterable[LogSource]) -> list[tuple[int, str, str]]:
    """Lines of Kafka's that were not understood, of all sources: how many, the first of them and its
    place."""
    return sorted((shape for source in sources for shape in source.shapes.values()), key=lambda one: -one[0])


_YEAR_US: Final = 366 * DAY_US
#: Lines may be written so much later than others with the same time: the clock has not gone back.
_LATE_US: Final = 60_000_000


class LogClock:
    """``tz``: of times that print no zone. ``day``: on which the first line was written that has no date."""

    def __init__(self, log: Log, tz: tzinfo, day: date | None) -> None:
        #: Whether every time named its zone, and how exact the times are.
        self.zoned = True
        self.step_us = 1
        #: What nothing says of times: the "year", the "date", or the "time"; "" if all is said.
        self.lacks = ""
        #: Of the numbers of dates, if it is only assumed.
        self.assumed_order = ""
        self._log = log
        self._tz = tz
        self._day = day
        self._order: str | None = None
        #: The last time that had a date.
        self._whole: Instant | None = None
        #: The last time without a date as printed, and how far later ones are moved, as midnight has passed.
        self._printed_us: int | None = None
        self._moved_us = 0
        self._falls = 0
        #: The last time in UTC of a zone that is given, and how many more times fell than rose.
        self._utc_us: int | None = None
        self._down = 0

    def order(self) -> str:
        """The order of the numbers of the log's dates: the whole log says it."""
        if self._order is None:
            self._order, is_assumed = day_order(_lines(self._log))
            self.assumed_order = self._order if is_assumed else ""
        return self._order

    def us(self, said: Instant) -> int:
        """The time in UTC."""
        if not said.lacks:
            self._whole = said
        elif self._whole is not None:
            said = completed(said, self._whole)
        else:
            said = self._undated(said)
        self.step_us = max(self.step_us, said.step_us)
        if said.is_utc:
            return said.us
        self.zoned = False
        return said.us if self._tz is UTC else self._in_utc(said.us)

    def _in_utc(self, local_us: int) -> int:
        """Two hours have one name when summer time ends: the second one, if the clock has gone back."""
        us, second_us = (to_utc_us(local_us, self._tz, fold) for fold in (0, 1))
        last_us = self._utc_us
        if last_us is not None:
            late = second_us <= last_us + _LATE_US if self._down > 0 else us < last_us - _LATE_US
            us = second_us if late else us
            self._down += (us < last_us) - (us > last_us)
        self._utc_us = us
        return us

    def _undated(self, said: Instant) -> Instant:
        """Counts days or years from the first line on, in the direction of the lines."""
        span_us = DAY_US if said.lacks == "date" else _YEAR_US
        if self._printed_us is not None:
            step_us = said.us - self._printed_us
            if abs(step_us) < span_us // 24:
                self._falls += (step_us < 0) - (step_us > 0)
            latest_us = span_us // 24 if self._falls > 0 else span_us - span_us // 24
            if step_us > latest_us:
                self._moved_us -= span_us
            elif step_us < latest_us - span_us:
                self._moved_us += span_us
        self._printed_us = said.us
        if said.lacks == "date":
            first = self._day or date(1970, 1, 1)
            us = said.us + self._moved_us + (first - date(1970, 1, 1)).days * DAY_US
        else:
            us = in_year(said.us, (self._day.year if self._day else 1972) + self._moved_us // span_us)
        if self._day is None:
            self.lacks = said.lacks
        return said._replace(us=us, lacks="")


def _lines(log: Log) -> Iterator[str]:
    """The lines of a log, before they are read; of a pipe, those that are there."""
    for file in open_files(log):
        if log.pipe is not None:
            yield from file.bytes.peek(HEAD_BYTES).decode("utf-8", "replace").splitlines()
        else:
            for _, line in file.lines():
                yield line.decode("utf-8", "replace")
