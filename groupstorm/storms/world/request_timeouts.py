"""How long processes wait for responses: request.timeout.ms, and longer for a JoinGroup."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from groupstorm.storms.world.clock import Clock


class SentRequest(Protocol):
    """A request whose sender waits for a response."""

    sent_us: int
    answered: bool

    def time_out(self) -> None: ...


class RequestTimeouts:
    """Requests whose senders wait ``timeout_us`` for a response, in the order of their arrival.

    One scheduled check of the first request stands for all: most are answered long before.
    """

    __slots__ = ("_check_scheduled", "_clock", "_timeout_us", "_waiting")

    def __init__(self, clock: Clock, timeout_us: int) -> None:
        self._clock = clock
        self._timeout_us = timeout_us
        self._waiting: deque[SentRequest] = deque()
        self._check_scheduled = False

    def add(self, request: SentRequest) -> None:
        """The request has arrived, and there is no response yet."""
        self._waiting.append(request)
        if not self._check_scheduled:
            self._schedule_check(request)

    def release_answered(self) -> None:
        """Release answered requests from the front of the queue."""
        waiting = self._waiting
        while waiting and waiting[0].answered:
            waiting.popleft()

    def _schedule_check(self, first: SentRequest) -> None:
        self._check_scheduled = True
        self._clock.at(max(first.sent_us + self._timeout_us, self._clock.now_us), self._check)

    def _check(self) -> None:
        self._check_scheduled = False
        self.release_answered()
        while self._waiting:
            first = self._waiting[0]
            if first.sent_us + self._timeout_us > self._clock.now_us:
                self._schedule_check(first)
                return
            self._waiting.popleft()
            first.time_out()
            self.release_answered()
