"""How far virtual time goes, and what comes first at one instant: a broker with timers of the test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.time_loop import TimeLoop
from groupstorm.storms.world.trace_buffer import TraceBuffer
from groupstorm.trace.rows import TraceEntry
from groupstorm.trace.schema import Source


class Timed:
    """A clock and a broker with timers at ``due_us``. ``said``: what was done, and when."""

    def __init__(self, *due_us: int) -> None:
        self.clock = Clock()
        self.said: list[tuple[int, str]] = []
        self.rows: list[TraceEntry] = []
        self._due_us = sorted(due_us)
        sink_and_broker: Any = self
        self.trace = TraceBuffer(self.clock, sink_and_broker)
        self.loop = TimeLoop(self.clock, sink_and_broker, self.trace)

    def due_us(self) -> int | None:
        return self._due_us[0] if self._due_us else None

    def fire_timers(self) -> None:
        self.note("timer")
        self._due_us.pop(0)

    def add_all(self, entries: Iterable[TraceEntry]) -> None:
        self.rows += entries

    def note(self, what: str) -> None:
        self.said.append((self.clock.now_us, what))

    def call_at(self, *times_us: int) -> None:
        for time_us in times_us:
            self.clock.at(time_us, self.note, "call")


@pytest.mark.parametrize("timers_us", [(), (101,), (102,), (5_000_000,)])
def test_what_is_due_a_microsecond_behind_the_end_waits(timers_us: tuple[int, ...]) -> None:
    """Whether or not the coordinator has something to do later."""
    timed = Timed(*timers_us)
    timed.call_at(99, 100, 101)
    timed.loop.run_until(100)
    assert timed.said == [(99, "call"), (100, "call")]
    assert timed.clock.now_us == 100


def test_timers_come_before_the_calls_of_their_instant() -> None:
    timed = Timed(0, 50, 100)
    timed.call_at(0, 49, 50, 100)
    timed.loop.run_until(100)
    assert timed.said == [
        (0, "timer"),
        (0, "call"),
        (49, "call"),
        (50, "timer"),
        (50, "call"),
        (100, "timer"),
        (100, "call"),
    ]


def test_time_goes_on_where_it_ended() -> None:
    timed = Timed(150)
    timed.call_at(101, 200)
    timed.loop.run_until(100)
    assert timed.said == []
    timed.loop.run_until(200)
    assert timed.said == [(101, "call"), (150, "timer"), (200, "call")]


def test_the_trace_has_every_row_when_time_stands_still() -> None:
    timed = Timed()
    event: Any = "a row"
    timed.clock.at(70, lambda: timed.trace.emit(Source.MEMBER, event))
    timed.loop.run_until(100)
    assert timed.rows == [(70, Source.MEMBER, event)]
    assert timed.trace.pending == []
    timed.loop.run_until(200)
    assert len(timed.rows) == 1, "a row goes out once"
