"""How fast the logs of a group's partitions grow, by their ends or else by the commits of the group."""

from __future__ import annotations

from typing import Final, NamedTuple

from groupstorm.trace.events.coordinator import OffsetsCommitted
from groupstorm.trace.events.scenario import RecordRatesChanged
from groupstorm.trace.rows import TracedEvent

#: Offsets that were seen for less than this say nothing: commits come every 5 s.
_SPAN_US: Final = 30_000_000


class _Span(NamedTuple):
    """The first and the last offset of a partition, and when they were seen."""

    began_us: int
    first: int
    ended_us: int
    last: int


class Growth:
    """Takes the events of one group in their order. ``by_commits``: no row has the ends of logs."""

    def __init__(self) -> None:
        self._ends: dict[str, _Span] = {}
        self._commits: dict[str, _Span] = {}
        #: Records a second, of partitions whose ends were seen: they hold until the ends are seen again.
        self._latest: dict[str, float] = {}

    def add(self, time_us: int, event: TracedEvent) -> None:
        """Take an event of the group; events of other kinds change nothing."""
        if isinstance(event, RecordRatesChanged):
            spans = self._ends
            self._latest.update(zip(event.partitions, (rate / 1000 for rate in event.rates), strict=True))
        elif isinstance(event, OffsetsCommitted) and event.error is None:
            spans = self._commits
        else:
            return
        for name, offset in zip(event.partitions, event.positions, strict=True):
            began = spans.get(name)
            first = (time_us, offset) if began is None else began[:2]
            spans[name] = _Span(*first, time_us, offset)

    @property
    def by_commits(self) -> bool:
        return not self._ends

    def rates(self) -> dict[str, float]:
        """Partition -> records a second; only partitions whose offsets were seen for long enough."""
        rates = {
            name: (span.last - span.first) * 1e6 / (span.ended_us - span.began_us)
            for name, span in (self._ends or self._commits).items()
            if span.ended_us - span.began_us >= _SPAN_US and span.last >= span.first
        }
        return self._latest | rates
