"""What every kind of source offers to an import: observations, the places of its lines, and counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, tzinfo
from typing import ClassVar, Final

from groupstorm.imports.lines import Log, LogFile, open_files
from groupstorm.imports.log_clock import LogClock
from groupstorm.imports.observation import Observation
from groupstorm.imports.prefixes import Writer

#: Different shapes of lines that are remembered because they were not understood.
SHAPES_MAX: Final = 1_000
#: Characters of a line that are shown if it was not understood.
_SHOWN_MAX: Final = 200


class LogSource(ABC):
    """One log, dump, segment or pasted output. After `observations`, the counts say what it held."""

    #: What `lines` counts, in messages.
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
        self.last_us: int | None = None
        #: What is damaged in the source: one sentence each.
        self.damage: list[str] = []
        #: Topic id, as Kafka prints it -> name, as far as the source says it.
        self.topic_names: dict[str, str] = {}
        self._starts: list[int] = []
        self._files: list[str] = []

    @abstractmethod
    def observations(self) -> Iterator[Observation]:
        """What the source says, in its own order. Raises InputError if it cannot be read."""

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
        """The time of an observation."""
        if self.first_us is None or time_us < self.first_us:
            self.first_us = time_us
        if self.last_us is None or time_us > self.last_us:
            self.last_us = time_us

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
