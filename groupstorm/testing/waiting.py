"""Waiting for the broker's thread, in async tests and in tests that are not async."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable

from groupstorm.testing.arguments import seconds

#: How long a test waits unless it says otherwise.
DEFAULT_TIMEOUT_S = 30.0

#: Is done when the condition that a test waits for is fulfilled.
WaitFuture = concurrent.futures.Future[None]
#: Makes the error that is raised when the time is over; the argument: how long the test has waited.
MakeTimeout = Callable[[float], AssertionError]


async def until(future: WaitFuture, timeout_s: float, make_timeout: MakeTimeout) -> None:
    """Wait on this event loop. Raises the error of ``make_timeout``."""
    timeout_s = seconds("timeout_s", timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.wrap_future(future)
    except TimeoutError:
        raise make_timeout(timeout_s) from None


def wait(future: WaitFuture, timeout_s: float, make_timeout: MakeTimeout) -> None:
    """Wait on this thread. Raises the error of ``make_timeout``."""
    timeout_s = seconds("timeout_s", timeout_s)
    try:
        future.result(timeout_s)
    except TimeoutError:
        future.cancel()
        raise make_timeout(timeout_s) from None
