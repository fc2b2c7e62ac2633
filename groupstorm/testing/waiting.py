"""Waiting for the broker's thread, in async tests and in tests that are not async, and the conditions that
tests wait for, which are looked at on the loop on which things happen."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from contextlib import suppress

from groupstorm.testing.arguments import seconds

#: The time that a test waits unless it says otherwise.
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
        problem = make_timeout(timeout_s)
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            problem.add_note(
                "this thread's event loop stood still meanwhile, with every client on it: in an async test"
                " await the call whose name has no wait_"
            )
        raise problem from None


class Conditions:
    """Whoever changes something calls `look_again`."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], WaitFuture]] = []

    def when(self, is_so: Callable[[], bool]) -> WaitFuture:
        """Is done as soon as the condition holds; with its error if it raises one."""
        done = WaitFuture()
        self._waiting.append((is_so, done))
        self.look_again()
        return done

    def look_again(self) -> None:
        still = []
        for is_so, done in self._waiting:
            if done.cancelled():
                continue
            try:
                is_met = is_so()
            except Exception as problem:  # noqa: BLE001  # a test's own condition: the test gets its error
                if done.set_running_or_notify_cancel():
                    done.set_exception(problem)
                continue
            if not is_met:
                still.append((is_so, done))
            elif done.set_running_or_notify_cancel():
                done.set_result(None)
        self._waiting = still
