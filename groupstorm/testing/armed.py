"""A fault that a test has armed: to count, to wait for, to cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from groupstorm.testing.faults import Fault
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S, WaitFuture, until, wait


class FaultTimeout(AssertionError):
    """The requests for which a fault waits did not come in time."""


class ArmedFault:
    """A fault that waits for requests. The end of ``with`` or ``async with`` cancels it."""

    def __init__(self, fault: Fault, waiting: Callable[[], WaitFuture], cancel: Callable[[], object]) -> None:
        """``waiting`` gives what is done as soon as the fault is used up. Both are called on the test's
        thread."""
        self._fault = fault
        self._waiting = waiting
        self._cancel = cancel

    @property
    def hits(self) -> int:
        """How many requests the fault has taken."""
        return self._fault.hits

    async def used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the fault has taken all its requests. Raises FaultTimeout."""
        await until(self._waiting(), timeout_s, self._make_timeout)

    def wait_used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`used_up` for tests that are not async."""
        wait(self._waiting(), timeout_s, self._make_timeout)

    def cancel(self) -> None:
        """Take no further requests."""
        self._cancel()

    def _make_timeout(self, timeout_s: float) -> FaultTimeout:
        return FaultTimeout(f"after {timeout_s:g} s: {self._fault!r}: the requests did not come")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_problem: object) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return repr(self._fault)
