"""Sources of an import that a capture has seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from groupstorm.imports.groups_command import DESCRIBED, LOG_ENDS
from groupstorm.imports.lines import Log
from groupstorm.imports.observation import Observation
from groupstorm.imports.offsets_topic.meaning import CURRENT
from groupstorm.imports.offsets_topic.observer import RecordObserver
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import LogSource
from groupstorm.imports.spill import SpillingSorter
from groupstorm.imports.topic_ids import topics_in


class _Captured(LogSource):
    """Keeps observations on disk until the import asks for them."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(Log(name, ()), number)
        self._kept = SpillingSorter(key=lambda one: one[0])
        self._count = 0

    def observations(self) -> Iterator[Observation]:
        for _, *parts in self._kept.sorted():
            yield Observation(*parts)

    def place(self, line: int) -> str:
        return f"{self.log.name}:{line}"

    def keep(self, observations: Iterable[Observation]) -> None:
        """For the import, in this order."""
        for one in observations:
            self._count += 1
            self._kept.add((self._count, *one))


class CapturedAnswers(_Captured):
    """Answers to DescribeGroups or ConsumerGroupDescribe, to OffsetFetch, and to ListOffsets. ``line``: the
    number of the poll."""

    unit: ClassVar[str] = "poll"

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.failed = 0
        self.writers.add(Writer.CAPTURE)

    def add(self, time_us: int, group: str, fields: dict[str, Any]) -> None:
        """A group is described."""
        self.lines += 1
        self.understood += 1
        self.see_time(time_us)
        self.keep([Observation(time_us, self.number, self.lines, DESCRIBED, group, fields)])

    def add_log_ends(self, time_us: int, group: str, ends: dict[str, int]) -> None:
        """The logs of a group's partitions end there."""
        self.see_time(time_us)
        self.keep([Observation(time_us, self.number, self.lines, LOG_ENDS, group, {"ends": ends})])

    def no_answer(self, why: str) -> None:
        """A poll has failed."""
        self.lines += 1
        self.failed += 1
        if self.failed == 1:
            self.damage.append(f"poll {self.lines} had no answer: {why}")


class CapturedRecords(_Captured):
    """Records of one partition of `__consumer_offsets`. ``line``: a record's offset."""

    unit: ClassVar[str] = "record"

    def __init__(self, name: str, number: int) -> None:
        super().__init__(name, number)
        self.observer = RecordObserver(self)
        #: The topics of assignments, which records of consumer groups name by their ids.
        self.assigned_topics: set[str] = set()

    def keep_ready(self) -> None:
        """Keep what the observer has."""
        self._keep_records(self.observer.ready())

    def finish(self) -> None:
        """No more records come."""
        self._keep_records(self.observer.finish())

    def _keep_records(self, observations: list[Observation]) -> None:
        for one in observations:
            if one.kind == CURRENT:
                self.assigned_topics |= topics_in(one)
        self.keep(observations)
