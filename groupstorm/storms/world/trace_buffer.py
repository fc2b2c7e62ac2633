"""Events on their way to the trace's sink, a few hundred at a time."""

from __future__ import annotations

from typing import Final

from groupstorm.storms.world.clock import Clock
from groupstorm.trace.rows import TracedEvent, TraceEntry, TraceSink
from groupstorm.trace.schema import Source

#: From how many events on the sink gets them: few enough to be in the processor's caches still.
FLUSH_AT: Final = 250


class TraceBuffer:
    """Stamps events with the virtual time. ``pending`` are the events that the sink does not have yet; the
    broker appends to it directly, which saves a call for each event."""

    __slots__ = ("_clock", "_sink", "pending")

    def __init__(self, clock: Clock, sink: TraceSink) -> None:
        self._clock = clock
        self._sink = sink
        self.pending: list[TraceEntry] = []

    def emit(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""
        self.pending.append((self._clock.now_us, source, event))

    def flush(self) -> None:
        """Hand all pending events to the sink."""
        self._sink.add_all(self.pending)
        self.pending.clear()
