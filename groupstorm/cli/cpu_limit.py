"""Interrupts an assignor that uses too much CPU time for one answer: it may never return one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    Assignor,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.userdata import Subscription, TopicPartition

#: The error in the place of an answer that does not come.
NO_ANSWER = "NoAnswer"

#: A plug-in may catch what it is broken off with: it is broken off again and again.
_AGAIN_S = 0.05


class _BrokenOff(BaseException):
    """Out of the assignor: no `Exception`, so that it passes through handlers of errors."""


class Limited:
    """``assignor``, refusing with `NO_ANSWER` after ``limit_ms`` of CPU time in one call.

    Works in the main thread of a process (signals go nowhere else), and while Python code runs.
    """

    def __init__(self, assignor: Assignor, limit_ms: int) -> None:
        self._assignor = assignor
        self._limit_ms = limit_ms

    def __getattr__(self, name: str) -> Any:
        return getattr(self._assignor, name)

    @property
    def name(self) -> str:
        return self._assignor.name

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]:
        return self._assignor.protocols

    @property
    def needs_equal_subscriptions(self) -> bool:
        return self._assignor.needs_equal_subscriptions

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The assignor's own user data."""
        return self._assignor.user_data(owned, generation)

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """The assignor's answer, or `AssignmentRefused`."""
        try:
            with _cpu_time(self._limit_ms / 1000):
                return self._assignor.assign(topics, subscriptions)
        except _BrokenOff:
            raise AssignmentRefused(NO_ANSWER, f"none within {self._limit_ms:,} ms of CPU time") from None


@contextmanager
def _cpu_time(limit_s: float) -> Iterator[None]:
    """`_BrokenOff` in the block after so many seconds of CPU time."""

    def break_off(_signal: int, _frame: FrameType | None) -> None:
        raise _BrokenOff

    before: Callable[[int, FrameType | None], Any] | int | None = signal.signal(signal.SIGPROF, break_off)
    try:
        signal.setitimer(signal.ITIMER_PROF, limit_s, _AGAIN_S)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
