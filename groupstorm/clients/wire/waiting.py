"""Tasks that wait: before a retry, with a deadline, or for a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from groupstorm.clients.consumer_group.timing import Backoff

RETRY_BACKOFF_MAX_MS = 1_000
"""retry.backoff.max.ms, Kafka's default."""


class Retries:
    """The attempts of one call; `pause` sleeps longer after each of them."""

    def __init__(self, retry_backoff_ms: int) -> None:
        self._backoff = Backoff(retry_backoff_ms, max(RETRY_BACKOFF_MAX_MS, retry_backoff_ms))
        self._attempts = 0

    async def pause(self) -> None:
        await asyncio.sleep(self._backoff.pause_ms(self._attempts) / 1000)
        self._attempts += 1


async def sleep_us(duration_us: int) -> None:
    """Sleep; not at all for 0."""
    if duration_us:
        await asyncio.sleep(duration_us / 1_000_000)


class WakeEvent:
    """One task waits, others wake it. A wake-up while nobody waits ends the next wait at once."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, until_us: int | None) -> None:
        """Wait for `wake`, or until ``until_us`` in the clock's microseconds (None: no deadline)."""
        delay_s = None if until_us is None else max(0, until_us - self._clock()) / 1_000_000
        try:
            async with asyncio.timeout(delay_s):
                await self._event.wait()
        except TimeoutError:
            return
        self._event.clear()


class ChangeNotifier:
    """Several tasks wait for a change. Each checks its condition first: an earlier change wakes nobody."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake every task that waits now."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        await self._event.wait()
