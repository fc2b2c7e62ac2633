"""When the application is inside poll(): while it waits for records, and at no other time.

Kafka's consumer does everything inside poll(): it joins, calls the listener, commits. Here most of it goes on
beside the application; what must find it between two records waits for it at this gate.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from groupstorm.clients.consumer.errors import PollInProgress
from groupstorm.clients.consumer.news import News
from groupstorm.clients.consumer.reading import Reading
from groupstorm.clients.wire.consumer import WireConsumer

_T = TypeVar("_T")

#: So long records may be given out one after the other before other tasks have their turn.
_TURN_S = 0.005


class Polling:
    """One application's calls of poll(). ``check`` raises what such a call has to raise."""

    def __init__(self, member: WireConsumer, reading: Reading, news: News, check: Callable[[], None]) -> None:
        self._member = member
        self._reading = reading
        self._news = news
        self._check = check
        self._called = False
        self._waiting = 0
        self._inside = asyncio.Event()
        self._ended = False
        self._turn_ends_s = 0.0

    async def poll(self, take: Callable[[], _T | None], timeout_ms: int | None) -> _T | None:
        """What ``take`` gives as soon as it gives something; None when the time is up."""
        if self._called:
            raise PollInProgress("two tasks ask for records: one has to do it")
        self._called = True
        try:
            self._check()
            self._reading.processed()
            if not self._is_wanted() and time.monotonic() < self._turn_ends_s:
                taken = take()
                if taken is not None:
                    self._member.polling.polled()
                    return taken
            return await self._wait(take, timeout_ms)
        finally:
            self._called = False

    async def at_poll(self) -> None:
        """Until the application is inside poll(), or will not come any more."""
        self._waiting += 1
        try:
            await self._inside.wait()
        finally:
            self._waiting -= 1

    def end(self) -> None:
        """The application closes its consumer: nobody waits for it any more."""
        self._ended = True
        self._inside.set()

    # -- parts -----------------------------------------------------------------------------------

    async def _wait(self, take: Callable[[], _T | None], timeout_ms: int | None) -> _T | None:
        loop = asyncio.get_running_loop()
        ends_s = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        self._inside.set()
        self._member.polling.enter()
        try:
            await asyncio.sleep(0)
            while True:
                while self._is_wanted():
                    await asyncio.sleep(0)  # who waits for it takes its turn now
                self._check()
                taken = take()
                if taken is not None or (ends_s is not None and loop.time() >= ends_s):
                    return taken
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(ends_s):
                        await self._news.wait()
        finally:
            if not self._ended:
                self._inside.clear()
            self._member.polling.leave()
            self._turn_ends_s = time.monotonic() + _TURN_S

    def _is_wanted(self) -> bool:
        return not self._ended and (self._waiting > 0 or self._member.polling.has_work)
