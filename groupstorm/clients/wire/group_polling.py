"""The application's calls of poll(), for a member of the consumer protocol (AsyncKafkaConsumer.poll)."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.clients.wire.wake_event import WakeEvent


class GroupPolling:
    """The application polls all the time, except between `leave` and `enter`.

    ``on_enter`` is called when poll() begins. ``is_due`` says whether poll() has something to do.
    ``on_subscribe`` takes the topics of a subscribe().
    """

    def __init__(
        self,
        clock: Callable[[], int],
        topics: tuple[str, ...],
        on_enter: Callable[[], None],
        is_due: Callable[[], bool],
        on_subscribe: Callable[[tuple[str, ...]], None],
    ) -> None:
        self.subscription = topics
        self._on_enter = on_enter
        self._is_due = is_due
        self._on_subscribe = on_subscribe
        self._wake_event = WakeEvent(clock)
        self._polls = True
        self._waits = False
        self._entered = 0

    @property
    def has_work(self) -> bool:
        """Whether the next poll() has to run the listener, to commit or to throw."""
        return self._waits and self._is_due()

    def leave(self) -> None:
        self._polls = False

    def enter(self) -> None:
        self._polls = True
        self._entered += 1
        self._on_enter()
        self._wake_event.wake()

    def polled(self) -> None:
        """Nothing: a call that returns at once follows another one by a few milliseconds."""

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """The next heartbeat tells the broker; a member that has not joined yet joins with these topics."""
        self.subscription = topics
        self._on_subscribe(topics)

    def wake(self) -> None:
        """poll() may have something to do."""
        self._wake_event.wake()

    async def until_due(self, until_us: int | None) -> None:
        """Wait for `wake` or until ``until_us``, and until the application is inside poll()."""
        self._waits = True
        try:
            await self._wake_event.wait(until_us if self._polls else None)
            while not self._polls:
                await self._wake_event.wait(None)
        finally:
            self._waits = False

    async def until_next_call(self) -> None:
        """poll() has thrown: wait until the application calls it again."""
        entered = self._entered
        while self._entered == entered:
            await self._wake_event.wait(None)
