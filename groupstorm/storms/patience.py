"""How long processes wait for answers: request.timeout.ms, and longer for a JoinGroup."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from groupstorm.storms.clock import Clock

if TYPE_CHECKING:
    from groupstorm.storms.connection import Exchange


class Patience:
    """Requests without an answer whose senders wait ``timeout_us``, in the order of arriving.

    One scheduled look at the first of them stands for all: most are answered long before.
    """

    __slots__ = ("_clock", "_looks", "_timeout_us", "_waiting")

    def __init__(self, clock: Clock, timeout_us: int) -> None:
        self._clock = clock
        self._timeout_us = timeout_us
        self._waiting: deque[Exchange] = deque()
        self._looks = False  # whether a look is scheduled

    def begin(self, exchange: Exchange) -> None:
        """It has arrived, and there is no answer yet."""
        self._waiting.append(exchange)
        if not self._looks:
            self._look_later(exchange)

    def forget_answered(self) -> None:
        """Let those go that have their answer, as far as nobody is before them."""
        waiting = self._waiting
        while waiting and waiting[0].done:
            waiting.popleft()

    def _look_later(self, first: Exchange) -> None:
        self._looks = True
        self._clock.at(max(first.sent_us + self._timeout_us, self._clock.now_us), self._look)

    def _look(self) -> None:
        self._looks = False
        self.forget_answered()
        while self._waiting:
            first = self._waiting[0]
            if first.sent_us + self._timeout_us > self._clock.now_us:
                self._look_later(first)
                return
            self._waiting.popleft()
            first.connection.timed_out(first)
            self.forget_answered()
