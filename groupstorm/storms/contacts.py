"""Requests that a member sends at fixed intervals: heartbeats and background commits.

A stable group's heartbeats change nothing, so they need not be simulated: a stream knows when its
k-th request is sent (start + k * interval, k >= 1) and when it arrives, and answers the two questions
that matter: when was the member last heard of, and which is the first request that arrives after the
group has changed. That one, and those behind it until an answer is fine again, become real. In exact
mode all are real; the trace is the same, because latencies depend on the time of sending alone.

Requests of one stream arrive in their order: a scenario's latencies stay below the interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupstorm.clients.generation import Generation

if TYPE_CHECKING:
    from groupstorm.storms.connection import Connection


class ContactStream:
    """All times in microseconds. ``generation`` is what its requests carry, ``connection`` their way to
    the coordinator and ``epoch`` that of the connection when the stream began.

    Latencies are drawn only where ``latency_most_us`` does not decide.
    """

    __slots__ = (
        "_drawn",
        "_drawn_us",
        "api",
        "arrived",
        "connection",
        "cut_us",
        "end_us",
        "epoch",
        "flushed",
        "generation",
        "interval_us",
        "latency_most_us",
        "real",
        "start_us",
    )

    def __init__(
        self,
        api: str,
        start_us: int,
        interval_us: int,
        generation: Generation,
        connection: Connection,
        latency_most_us: int,
    ) -> None:
        self.api = api
        self.start_us = start_us
        self.interval_us = interval_us
        self.generation = generation
        self.connection = connection
        self.epoch = connection.epoch
        self.latency_most_us = latency_most_us
        self.end_us: int | None = None
        self.cut_us: int | None = None
        #: The requests that were made real: one or two.
        self.real: tuple[int, ...] = ()
        self.flushed = 0
        #: The last request that arrived of a stream that has ended.
        self.arrived = 0
        self._drawn = self._drawn_us = 0

    def sent_us(self, k: int) -> int:
        return self.start_us + k * self.interval_us

    def arrival_us(self, k: int) -> int:
        if k != self._drawn:
            sent_us = self.start_us + k * self.interval_us
            self._drawn, self._drawn_us = k, sent_us + self.connection.heartbeat_latency_us(sent_us)
        return self._drawn_us

    def arrives_after(self, k: int, time_us: int) -> bool:
        """Whether the k-th request arrives later than ``time_us``."""
        sent_us = self.start_us + k * self.interval_us
        if sent_us > time_us:
            return True
        return sent_us + self.latency_most_us > time_us and self.arrival_us(k) > time_us

    def is_sent(self, k: int) -> bool:
        """Whether the k-th request leaves before the stream ends."""
        return self.end_us is None or self.sent_us(k) < self.end_us

    def last_sent(self, now_us: int) -> int:
        """The last request that was sent before ``now_us`` (0: none)."""
        if self.end_us is not None and self.end_us < now_us:
            now_us = self.end_us
        elapsed_us = now_us - 1 - self.start_us
        return elapsed_us // self.interval_us if elapsed_us > 0 else 0

    def last_arrived(self, by_us: int) -> int:
        """The last request that arrived by ``by_us`` and before the connection was cut (0: none)."""
        if self.cut_us is not None and self.cut_us < by_us:
            by_us = self.cut_us
        k = self.last_sent(by_us + 1)
        return k - 1 if k and self.arrives_after(k, by_us) else k

    def first_arriving(self, from_us: int) -> int:
        """The first request that arrives at ``from_us`` or later, whether or not it will be sent."""
        k = max(1, (from_us - self.start_us) // self.interval_us)
        return k if self.arrives_after(k, from_us - 1) else k + 1

    def forget(self, k: int) -> None:
        """The k-th request was to be made real and has not been sent, or was lost."""
        self.real = tuple([other for other in self.real if other != k])

    def computed(self, last: int) -> int:
        """How many of the requests up to the ``last`` one have not been made real."""
        return last - len([k for k in self.real if k <= last]) if self.real else last
