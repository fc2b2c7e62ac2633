"""The order of things in virtual time: what the clock holds, then the coordinator's timers."""

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
        """Do everything that is due by ``end_us``; at one instant, the coordinator's timers come last."""
        clock, broker = self._clock, self._broker
        while True:
            due_us = broker.due_us()
            clock.limit_us = (end_us if due_us is None else min(due_us, end_us)) + 1
            clock.run()
            due_us = broker.due_us()  # calls may have set an earlier timer, or cancelled this one
            if due_us is not None and due_us < clock.limit_us:
                clock.advance_to(max(due_us, clock.now_us))
                broker.fire_timers()
            elif clock.limit_us > end_us:
                break
        clock.advance_to(max(end_us, clock.now_us))
        self._trace.flush()
