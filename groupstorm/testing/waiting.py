"""Waiting for what happens on another thread, in async and in other tests: one rule for the two."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable

#: How long a test waits unless it says otherwise.
DEFAULT_TIMEOUT_S = 30.0

Happening = concurrent.futures.Future[None]
#: What is raised when it did not happen in time.
TooLate = Callable[[float], AssertionError]


async def until(happening: Happening, timeout_s: float, too_late: TooLate) -> None:
    """Wait on this event loop. Raises what ``too_late`` makes."""
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.wrap_future(happening)
    except TimeoutError:
        raise too_late(timeout_s) from None


def wait(happening: Happening, timeout_s: float, too_late: TooLate) -> None:
    """Wait on this thread. Raises what ``too_late`` makes."""
    try:
        happening.result(timeout_s)
    except TimeoutError:
        happening.cancel()
        raise too_late(timeout_s) from None
