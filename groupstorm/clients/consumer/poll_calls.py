"""The application's calls of poll(): it is inside poll() while it waits for records, and at no other time.

Kafka's consumer does everything inside poll(): it joins, calls the listener, commits. Here background tasks
do most of it; a step that needs the application between two records waits for its next call.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from groupstorm.clients.consumer.errors import PollInProgress
from groupstorm.clients.consumer.fetch_buffer import FetchBuffer
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.waiting import ChangeNotifier

_T = TypeVar("_T")

#: The time for which poll() returns fetched records at once before it lets other tasks run.
_TURN_S = 0.005


class PollCalls:
    """One application's calls of poll(). ``check`` raises an error that a call has to raise."""

    def __init__(
        self, member: WireConsumer, buffer: FetchBuffer, changes: ChangeNotifier, check: Callable[[], None]
    ) -> None:
        self._member = member
        self._buffer = buffer
        self._changes = changes
        self._check = check
        self._called = False
        self._waiting = 0
        self._inside = asyncio.Event()
        self._ended = False
        self._turn_ends_s = 0.0

    async def poll(self, take: Callable[[], _T | None], timeout_ms: int | None) -> _T | None:
        """The result of ``take`` as soon as it is not None; None when the time is up."""
        if self._called:
            raise PollInProgress("two tasks ask for records: only one may")
        self._called = True
        try:
            self._check()
            self._buffer.processed()
            if not self._is_wanted() and time.monotonic() < self._turn_ends_s:
                taken = take()
                if taken is not None:
                    self._member.polling.polled()
                    return taken
            return await self._wait(take, timeout_ms)
        finally:
            self._called = False

    async def at_poll(self) -> None:
        """Wait until the application is inside poll() or has closed its consumer."""
        self._waiting += 1
        try:
            await self._inside.wait()
        finally:
            self._waiting -= 1

    def end(self) -> None:
        """The application closes its consumer: no task waits for its calls any more."""
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
                    await asyncio.sleep(0)  # the task that waits for this call runs now
                self._check()
                taken = take()
                if taken is not None or (ends_s is not None and loop.time() >= ends_s):
                    return taken
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(ends_s):
                        await self._changes.wait()
        finally:
            if not self._ended:
                self._inside.clear()
            self._member.polling.leave()
            self._turn_ends_s = time.monotonic() + _TURN_S

    def _is_wanted(self) -> bool:
        return not self._ended and (self._waiting > 0 or self._member.polling.has_work)
