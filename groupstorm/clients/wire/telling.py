"""What a member tells, each event with its time; times never go back."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.clients import events

#: Takes an event with its time in microseconds.
OnEvent = Callable[[int, events.Event], None]


class Telling:
    """Stamps events. Those that happen while a listener works wait for the one that tells of it.

    That a listener works is told with the time it took, which nobody knows before it has returned.
    """

    def __init__(self, clock: Callable[[], int], on_event: OnEvent) -> None:
        self._clock = clock
        self._on_event = on_event
        self._held: list[tuple[int, events.Event]] | None = None
        self._ended = False

    def tell(self, event: events.Event) -> None:
        if self._ended:
            return
        now_us = self._clock()
        if self._held is None:
            self._on_event(now_us, event)
        else:
            self._held.append((now_us, event))

    def end(self) -> None:
        """The process is gone: nothing is told any more."""
        self._ended = True
        self._held = None

    def hold(self) -> int:
        """Keep what is told from now on, until `release`; the time."""
        self._held = []
        return self._clock()

    def release(self, began_us: int, event: events.Event) -> None:
        """Tell the ``event`` that began then, and what was kept meanwhile."""
        if self._ended:
            return
        held, self._held = self._held or [], None
        self._on_event(began_us, event)
        for time_us, kept in held:
            self._on_event(time_us, kept)
