"""Waiting for whichever comes first: a time of the consumer's clock, or news."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Waking:
    """One task waits, others wake it; news that came while nobody waited is not lost."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def wait(self, until_us: int | None) -> None:
        """Until there is news, or ``until_us`` in the clock's microseconds (None: however long it takes)."""
        delay_s = None if until_us is None else max(0, until_us - self._clock()) / 1_000_000
        try:
            async with asyncio.timeout(delay_s):
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()
