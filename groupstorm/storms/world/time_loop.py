"""The order of things in virtual time: the coordinator's timers, then what the clock holds."""

from __future__ import annotations

from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.trace_buffer import TraceBuffer


class TimeLoop:
    """Lets virtual time pass for the clock and the broker together."""

    def __init__(self, clock: Clock, broker: VirtualBroker, trace: TraceBuffer) -> None:
        self._clock = clock
        self._broker = broker
        self._trace = trace

    def run_until(self, end_us: int) -> None:
        """Do everything that is due by ``end_us``; at one instant, its timers before requests."""
        clock, broker = self._clock, self._broker
        while True:
            due_us = broker.due_us()
            clock.limit_us = end_us + 1 if due_us is None else min(due_us, end_us + 1)
            clock.run()
            if clock.limit_us > end_us:
                break
            clock.advance_to(max(clock.limit_us, clock.now_us))
            broker.fire_timers()
        clock.advance_to(max(end_us, clock.now_us))
        self._trace.flush()
