"""When the requests of one series are sent and when they arrive, by arithmetic alone.

The k-th request (k >= 1) is sent at start + k * interval + the lateness of k timers (`lateness`). Its latency
depends on the time of sending alone, so it is the same whether the request is sent or only computed.
Requests of one series arrive in their order: a scenario's latencies stay below the interval.
"""

from __future__ import annotations

from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.instants import Kind, moment_of, order_of
from groupstorm.storms.world.periodic_requests.lateness import Lateness


class RequestSchedule:
    """The times of one series, in microseconds.

    ``kind`` is that of the arrivals. ``lateness``: of the timer behind the requests; None if it is always on
    time. ``latency_most_us``: a latency is drawn only if that does not decide.
    """

    __slots__ = (
        "_drawn",
        "_drawn_us",
        "_sent",
        "_sent_before",
        "_sent_before_us",
        "_sent_us",
        "connection",
        "interval_us",
        "latency_most_us",
        "lateness",
        "leaves_order",
        "order",
        "start_us",
    )

    def __init__(
        self,
        kind: Kind,
        start_us: int,
        interval_us: int,
        connection: VirtualConnection,
        latency_most_us: int,
        lateness: Lateness | None = None,
    ) -> None:
        #: The order of leaving, and that of arriving, among all that happens at one instant.
        self.leaves_order = order_of(Kind.PERIODIC_REQUEST_LEAVES, connection.index)
        self.order = order_of(kind, connection.index)
        self.start_us = start_us
        self.interval_us = interval_us
        self.connection = connection
        self.latency_most_us = latency_most_us
        self.lateness = lateness
        #: The request whose arrival was asked for last, and those whose leaving was; 0: none.
        self._drawn = self._drawn_us = self._sent = self._sent_us = 0
        self._sent_before = self._sent_before_us = 0

    def sent_us(self, k: int) -> int:
        if k == self._sent and k:
            return self._sent_us
        if k == self._sent_before and k:
            return self._sent_before_us
        sent_us, lateness = self.start_us + k * self.interval_us, self.lateness
        if lateness is not None:
            sent_us += lateness.total_us(k)
        self._sent_before, self._sent_before_us = self._sent, self._sent_us
        self._sent, self._sent_us = k, sent_us
        return sent_us

    def leaves(self, k: int) -> int:
        """The moment at which the k-th request leaves."""
        return moment_of(self.sent_us(k), self.leaves_order)

    def arrival_us(self, k: int) -> int:
        if k != self._drawn:
            sent_us = self.sent_us(k)
            self._drawn, self._drawn_us = k, sent_us + self.connection.periodic_latency_us(sent_us)
        return self._drawn_us

    def arrives(self, k: int) -> int:
        """The moment at which the k-th request arrives."""
        return moment_of(self.arrival_us(k), self.order)

    def arrives_by_us(self, k: int) -> int:
        """When the k-th request has arrived in any case."""
        return self.sent_us(k) + self.latency_most_us

    @property
    def most_apart_us(self) -> int:
        """The longest time between the arrivals of two requests."""
        lateness = self.lateness
        apart_us = self.interval_us + self.latency_most_us
        return apart_us if lateness is None else apart_us + lateness.most_us

    def last_sent(self, time_us: int) -> int:
        """The last request that leaves by ``time_us`` (0: none)."""
        elapsed_us = time_us - self.start_us
        if elapsed_us <= 0:
            return 0
        lateness = self.lateness
        interval_us = self.interval_us
        if lateness is None:
            return elapsed_us // interval_us
        k = elapsed_us // (interval_us + lateness.mean_us)
        sent_us = self.sent_us(k)
        while sent_us > time_us:
            k -= 1
            sent_us = self.sent_us(k)
        while time_us - sent_us >= interval_us:
            sent_us = self.sent_us(k + 1)
            if sent_us > time_us:
                break
            k += 1
        return k

    def last_arrived(self, time_us: int, sent: int) -> int:
        """The last request that arrives by ``time_us``; ``sent`` is the last one that leaves by then."""
        if not sent or self.arrives_by_us(sent) <= time_us:
            return sent
        return sent if self.arrival_us(sent) <= time_us else sent - 1

    def next_sent_us(self, now_us: int) -> int:
        """When the first request leaves that is not sent before ``now_us``."""
        return self.sent_us(self.last_sent(now_us - 1) + 1)

    def works(self, now_us: int, share: int, most_us: int) -> None:
        """The application works from now on, which delays the requests behind the next one (`Lateness`)."""
        if self.lateness is not None:
            self.lateness.works(self.last_sent(now_us) + 1, share, most_us)
            self._drawn = self._sent = self._sent_before = 0
