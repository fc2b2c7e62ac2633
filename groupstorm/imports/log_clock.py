"""The clock of one log: what the times of its lines are in UTC, and what no line says about them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, tzinfo
from typing import Final

from groupstorm.imports.lines import HEAD_BYTES, Log, open_files
from groupstorm.imports.times import DAY_US, Instant, completed, day_order, in_year, to_utc_us

_YEAR_US: Final = 366 * DAY_US


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
        return said.us if self._tz is UTC else to_utc_us(said.us, self._tz)

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
