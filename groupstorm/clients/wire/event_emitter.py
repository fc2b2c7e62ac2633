"""The events of one member, each with its time; times never go back."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.trace.events import member as events

#: Takes an event with its time in microseconds.
OnEvent = Callable[[int, events.Event], None]


class EventEmitter:
    """Stamps events and passes them on.

    The event of a listener's call has the time at which the call began, and the call's duration, which is
    known only at its end. Events during the call are held back and follow it.
    """

    def __init__(self, clock: Callable[[], int], on_event: OnEvent) -> None:
        #: The time in microseconds.
        self.now_us = clock
        self._on_event = on_event
        self._held: list[tuple[int, events.Event]] | None = None
        self._ended = False

    def emit(self, event: events.Event) -> None:
        if self._ended:
            return
        now_us = self.now_us()
        if self._held is None:
            self._on_event(now_us, event)
        else:
            self._held.append((now_us, event))

    def end(self) -> None:
        """The process is gone: later events are dropped."""
        self._ended = True
        self._held = None

    def hold(self) -> int:
        """Hold back events until `release`. Returns the time."""
        self._held = []
        return self.now_us()

    def release(self, began_us: int, event: events.Event) -> None:
        """Emit ``event`` with the time ``began_us``, then the events that were held back."""
        if self._ended:
            return
        held, self._held = self._held or [], None
        self._on_event(began_us, event)
        for time_us, later in held:
            self._on_event(time_us, later)
