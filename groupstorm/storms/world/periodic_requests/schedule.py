"""When the requests of one series are sent and when they arrive, by arithmetic alone.

The k-th request (k >= 1) is sent at start + k * interval + the lateness of k timers (`lateness`). Its latency
depends on the time of sending alone, so it is the same whether the request is simulated or only computed.
Requests of one series arrive in their order: a scenario's latencies stay below the interval.
"""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.instants import Kind, order_of
from groupstorm.storms.world.periodic_requests.lateness import Lateness

HEARTBEAT = "Heartbeat"
OFFSET_COMMIT = "OffsetCommit"
_ARRIVAL = {HEARTBEAT: Kind.HEARTBEAT_ARRIVES, OFFSET_COMMIT: Kind.COMMIT_ARRIVES}


class RequestSchedule:
    """One series of heartbeats or background commits; all times in microseconds.

    ``generation`` is what its requests carry (a commit of a consumer group: the member's epoch, which may
    change while the series runs), ``connection`` their way to the coordinator and ``epoch`` that
    of the connection when the series began. A latency is drawn only if ``latency_most_us`` does not decide.
    ``order`` is that of the arrivals among all that happens at one instant, ``leaves_order`` that of leaving.
    ``lateness``: of the timer behind the requests; None if it is always on time.
    """

    __slots__ = (
        "_drawn",
        "_drawn_us",
        "_earlier",
        "api",
        "arrived",
        "connection",
        "cut_us",
        "empty",
        "end_us",
        "epoch",
        "generation",
        "interval_us",
        "latency_most_us",
        "lateness",
        "leaves_order",
        "order",
        "positions",
        "real",
        "refused",
        "settled",
        "start_us",
        "under_way",
    )

    def __init__(
        self,
        api: str,
        start_us: int,
        interval_us: int,
        generation: Generation,
        connection: VirtualConnection,
        latency_most_us: int,
        lateness: Lateness | None = None,
    ) -> None:
        self.api = api
        self.leaves_order = order_of(Kind.PERIODIC_REQUEST_LEAVES, connection.index)
        self.order = order_of(_ARRIVAL[api], connection.index)
        self.start_us = start_us
        self.interval_us = interval_us
        self.generation = generation
        #: What it carried before, each with the time until which it did.
        self._earlier: tuple[tuple[int, Generation], ...] = ()
        self.connection = connection
        self.epoch = connection.epoch
        self.latency_most_us = latency_most_us
        self.lateness = lateness
        #: The last instant at which something was sent before the series ended.
        self.end_us: int | None = None
        #: When the connection was lost: nothing arrives after that.
        self.cut_us: int | None = None
        #: The requests that were made real: one or two.
        self.real: tuple[int, ...] = ()
        #: The first request that the coordinator refused, and all behind it: no contact (0: none).
        self.refused = 0
        #: So many background commits came before there was a position: they had nothing to commit.
        self.empty = 0
        #: The last background commit whose positions count.
        self.settled = 0
        #: What the last one committed that had arrived when the series ended; empty: look it up.
        self.positions: dict[TopicPartition, int] = {}
        #: What the commit commits that was under way when the series ended.
        self.under_way: dict[TopicPartition, int] = {}
        #: The last request that arrived of a series that has ended.
        self.arrived = 0
        self._drawn = self._drawn_us = 0

    def carry(self, generation: Generation, now_us: int) -> None:
        """From now on the requests carry another generation."""
        before_us = now_us - self.latency_most_us
        self._earlier = (
            *[earlier for earlier in self._earlier if earlier[0] >= before_us],
            (now_us, self.generation),
        )
        self.generation = generation

    def generation_of(self, k: int) -> Generation:
        """What the k-th request carries, if it is under way or will be sent."""
        if self._earlier:
            sent_us = self.sent_us(k)
            for until_us, generation in self._earlier:
                if sent_us < until_us:
                    return generation
        return self.generation

    def sent_us(self, k: int) -> int:
        lateness = self.lateness
        sent_us = self.start_us + k * self.interval_us
        return sent_us if lateness is None else sent_us + lateness.total_us(k)

    def arrival_us(self, k: int) -> int:
        if k != self._drawn:
            sent_us = self.sent_us(k)
            self._drawn, self._drawn_us = k, sent_us + self.connection.periodic_latency_us(sent_us)
        return self._drawn_us

    def arrives_after(self, k: int, time_us: int) -> bool:
        """Whether the k-th request arrives later than ``time_us``."""
        sent_us = self.sent_us(k)
        if sent_us > time_us:
            return True
        return sent_us + self.latency_most_us > time_us and self.arrival_us(k) > time_us

    def most_apart_us(self) -> int:
        """The longest time between the arrivals of two requests."""
        lateness = self.lateness
        apart_us = self.interval_us + self.latency_most_us
        return apart_us if lateness is None else apart_us + lateness.most_us

    def is_sent(self, k: int) -> bool:
        """Whether the k-th request leaves before the series ends."""
        return self.end_us is None or self.sent_us(k) <= self.end_us

    def last_sent(self, by_us: int) -> int:
        """The last request that was sent by ``by_us`` (0: none)."""
        if self.end_us is not None and self.end_us < by_us:
            by_us = self.end_us
        return self._last_due(by_us)

    def _last_due(self, time_us: int) -> int:
        """The last request that leaves by ``time_us`` if the series goes on (0: none)."""
        elapsed_us = time_us - self.start_us
        if elapsed_us <= 0:
            return 0
        lateness = self.lateness
        interval_us = self.interval_us
        if lateness is None:
            return elapsed_us // interval_us
        k = elapsed_us // (interval_us + lateness.mean_us)
        due_us = k * interval_us + lateness.total_us(k)
        while due_us > elapsed_us:
            k -= 1
            due_us = k * interval_us + lateness.total_us(k)
        while elapsed_us - due_us >= interval_us:
            due_us = (k + 1) * interval_us + lateness.total_us(k + 1)
            if due_us > elapsed_us:
                break
            k += 1
        return k

    def last_arrived(self, by_us: int) -> int:
        """The last request that arrived by ``by_us`` and before the connection was lost (0: none)."""
        if self.cut_us is not None and self.cut_us < by_us:
            by_us = self.cut_us
        k = self.last_sent(by_us)
        return k - 1 if k and self.arrives_after(k, by_us) else k

    def first_arriving(self, from_us: int) -> int:
        """The first request that arrives at ``from_us`` or later, whether or not it will be sent."""
        k = self._last_due(from_us) or 1
        return k if self.arrives_after(k, from_us - 1) else k + 1

    def next_sent_us(self, now_us: int) -> int:
        """When the first request leaves that is not sent before ``now_us``."""
        return self.sent_us(self._last_due(now_us - 1) + 1)

    def works(self, now_us: int, share: int, most_us: int) -> None:
        """The application works from now on, which delays the requests behind the next one (`Lateness`)."""
        if self.lateness is not None:
            self.lateness.works(self._last_due(now_us) + 1, share, most_us)
            self._drawn = 0

    def accepted(self, k: int) -> int:
        """The last request up to the k-th that was contact with the coordinator (0: none): it had something
        to say, and the coordinator has not refused it."""
        if 0 < self.refused <= k:
            k = self.refused - 1
        return k if k > self.empty else 0

    def forget(self, k: int) -> None:
        """The k-th request was to be made real, but was not sent or was lost."""
        self.real = tuple([other for other in self.real if other != k])

    def computed(self, last: int) -> int:
        """How many requests up to the ``last`` one had something to say and have not been made real."""
        empty = self.empty
        if last <= empty:
            return 0
        return last - empty - len([k for k in self.real if empty < k <= last])
