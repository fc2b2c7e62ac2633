"""Events on their way to the trace's sink, a few hundred at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from groupstorm.storms.world.clock import Clock
from groupstorm.trace.rows import TracedEvent, TraceEntry, TraceSink
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import Tee

#: From how many events on the sink gets them: few enough to be in the processor's caches still.
FLUSH_AT: Final = 250


class TraceBuffer:
    """Stamps events with the virtual time. ``pending`` are the events that the sinks do not have yet; the
    broker appends to it directly, which saves a call for each event. ``checks`` see, between the events, what
    has no row."""

    def __init__(self, clock: Clock, sink: TraceSink, checks: TraceSink) -> None:
        self._clock = clock
        self._sink = sink
        self._checks = checks
        #: Calls, each with the number of pending events that come before it.
        self._between: list[tuple[int, Callable[[], None]]] = []
        self.pending: list[TraceEntry] = []

    def emit(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""
        self.pending.append((self._clock.now_us, source, event))

    def between_events(self, call: Callable[[], None]) -> None:
        """Call when the checks have all events so far and no later one."""
        self._between.append((len(self.pending), call))

    def flush(self) -> None:
        """Hand all pending events on."""
        pending, checks, at = self.pending, self._checks, 0
        self._sink.add_all(pending)
        rest = iter(pending)
        for before, call in self._between:
            if before > at:
                checks.add_all(islice(rest, before - at))
            call()
            at = before
        checks.add_all(rest)
        pending.clear()
        self._between.clear()

    def close(self) -> None:
        """Hand the last events on, and let go of the sink: what a run leaves behind has cycles, which would
        keep the trace until Python looks for them."""
        self.flush()
        self._sink = self._checks = Tee()
