"""Waking tasks: one that waits with a deadline (`WakeEvent`), or all that wait (`ChangeNotifier`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class WakeEvent:
    """One task waits, others wake it. A wake-up while nobody waits ends the next wait at once."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._event = asyncio.Event()

    def wake(self) -> None:
        self._event.set()

    async def wait(self, until_us: int | None) -> None:
        """Until `wake`, or until ``until_us`` in the clock's microseconds (None: no deadline)."""
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
