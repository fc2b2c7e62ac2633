"""One series of heartbeats or background commits: its requests are sent, or rest and are computed.

A request that is sent is an event when it leaves and another when it arrives. A resting one has been answered
when its latency has passed; what that meant is made up for when the series wakes (`Series.catch_up`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import heartbeat
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import HeartbeatResponse, OffsetCommitResponse, Response
from groupstorm.storms.records.positions import Records, Work, commit_request
from groupstorm.storms.world.clock import ClientClock
from groupstorm.storms.world.connection import Network, VirtualConnection
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.storms.world.periodic_requests.schedule import RequestSchedule
from groupstorm.storms.world.response_errors import first_error


class Sender(Protocol):
    """The process that sends the requests. Its parts stay the same as long as it lives.

    ``commits``: who commits, a value of the setting of that name.
    """

    commits: str
    config: ConsumerConfig
    connection: VirtualConnection
    client_clock: ClientClock
    work: Work

    @property
    def membership(self) -> GroupMember: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        ...

    def reachable(self) -> bool:
        """Whether it can send heartbeats now."""
        ...

    def receives(self) -> bool:
        """Whether it can receive a response now."""
        ...

    def work_share(self) -> tuple[int, int]:
        """Return the application's share of time at work, in `SHARES`, and the microseconds between polls."""
        ...

    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """A heartbeat was answered that had been sent in that generation."""
        ...

    def nudge(self) -> None:
        """A response may have made a rejoin necessary: the application notices at its next poll()."""
        ...


#: Gets each answer that is an error, when the member receives it; and None for those without, at once.
OnAnswer = Callable[[Error | None], None]


class Series(ABC):
    """The requests of one series. ``generation`` is what those carry that leave now.

    ``on_answer``: see `OnAnswer`. Resting requests are those behind number ``sent``.
    """

    __slots__ = (
        "_broker",
        "_clock",
        "_config",
        "_connection",
        "_epoch",
        "_is_over",
        "_on_answer",
        "_scheduled",
        "_sender",
        "generation",
        "is_resting",
        "schedule",
        "sent",
        "under_way",
    )

    API: ClassVar[str]

    def __init__(
        self, network: Network, sender: Sender, schedule: RequestSchedule, on_answer: OnAnswer
    ) -> None:
        self._clock = network.clock
        self._broker = network.broker
        self._sender = sender
        self._config = sender.config
        self._connection = sender.connection
        #: That of the connection when the series began.
        self._epoch = sender.connection.epoch
        self._on_answer = on_answer
        self.schedule = schedule
        self.generation = sender.membership.generation
        self.is_resting = False
        self.sent = 0
        #: The number of requests that were sent and have not arrived.
        self.under_way = 0
        #: The last request for whose leaving there is an event.
        self._scheduled = 0
        self._is_over = False

    # -- where it is -----------------------------------------------------------------------------

    def sent_by_now(self) -> int:
        """The last request that has left."""
        if not self.is_resting:
            return self.sent
        schedule = self.schedule
        sent = schedule.last_sent(self._clock.passed_us(schedule.leaves_order))
        return sent if sent > self.sent else self.sent

    def arrived_by_now(self, sent: int) -> int:
        """The last request that has arrived; ``sent`` is the last one that has left."""
        if not self.is_resting:
            return sent - self.under_way
        schedule = self.schedule
        arrived = schedule.last_arrived(self._clock.passed_us(schedule.order), sent)
        return arrived if arrived > self.sent else self.sent

    # -- it rests, wakes and ends ----------------------------------------------------------------

    def rest(self) -> None:
        """Compute the requests from now on."""
        self.is_resting, self.generation = True, self._sender.membership.generation

    def wake(self) -> int:
        """Send the requests from now on. Returns what `catch_up` does."""
        contact = self.catch_up()
        self.send_next()
        return contact

    def catch_up(self) -> int:
        """If the series rests: what has arrived was answered, and a request that is under way will arrive as
        an event. Returns the moment of the last arrival (0: none)."""
        if not self.is_resting:
            return 0
        sent = self.sent_by_now()
        arrived = self.arrived_by_now(sent)
        before = self._accepted_before(sent, arrived)
        self.sent, self.is_resting = sent, False
        if sent > arrived and sent > before:
            self._set_out(sent)
        if arrived <= before:
            return 0
        broker = self._broker
        broker.count((self.API, None), arrived - before)
        contact = self.schedule.arrives(arrived)
        if broker.is_writing:
            broker.wait_for_write(self.API, self._arrivals(arrived, before))
        return contact

    def _accepted_before(self, _sent: int, _arrived: int) -> int:
        """Computed requests count from the one behind this; ``sent`` have left and ``arrived`` arrived."""
        return self.sent

    def _arrivals(self, arrived: int, before: int) -> Iterator[int]:
        """When the computed requests arrived, the last one first."""
        return (self.schedule.arrival_us(k) for k in range(arrived, before, -1))

    def end(self) -> None:
        """No more requests leave. One that is due at this very instant has left."""
        k = self.sent + 1
        if self.schedule.sent_us(k) <= self._clock.passed_us(self.schedule.leaves_order):
            self._send(k)
        self._is_over = True

    # -- requests are sent -----------------------------------------------------------------------

    def send_next(self) -> None:
        """The next request leaves as an event."""
        k = self.sent + 1
        if k != self._scheduled:
            self._scheduled = k
            schedule, clock = self.schedule, self._clock
            sent_us, now_us = schedule.sent_us(k), clock.now_us
            clock.in_order(sent_us if sent_us > now_us else now_us, schedule.leaves_order, self._send, (k,))

    def _send(self, k: int) -> None:
        if self._is_over or self.is_resting or k != self.sent + 1:
            return
        self.sent, self.generation = k, self._sender.membership.generation
        self._set_out(k)
        self.send_next()

    @abstractmethod
    def _set_out(self, k: int) -> None:
        """The k-th request is on its way to the coordinator."""

    def _arrive_later(self, k: int, arrive: Callable[..., None], contents: tuple[Any, ...] = ()) -> None:
        self.under_way += 1
        arrival_us = max(self.schedule.arrival_us(k), self._clock.now_us)
        self._clock.in_order(arrival_us, self.schedule.order, arrive, (k, *contents))

    def _is_lost(self, k: int) -> bool:
        """Whether the k-th request, which was to arrive now, was under way when the connection was lost."""
        self.under_way -= 1
        lost = self._connection.lost
        return lost > 0 and self.schedule.leaves(k) < lost

    def _answered(self, k: int, error: Error) -> None:
        """The coordinator has answered: an error travels to the member, which goes on as before without."""
        if error is NO_ERROR:
            self._on_answer(None)
            return
        connection = self._connection
        latency_us = connection.periodic_response_latency_us(self.schedule.sent_us(k))
        leaves_us = connection.response_passes_us(self._clock.now_us)
        self._clock.in_order(leaves_us + latency_us, connection.response_order, self._receive, (error,))

    def _receive(self, error: Error) -> None:
        """The member receives the error of a response, unless its connection was lost meanwhile."""
        if self._sender.receives() and self._epoch == self._connection.epoch:
            self._tell(error)
            self._on_answer(error)

    @abstractmethod
    def _tell(self, error: Error) -> None:
        """Tell the member of the error."""


class Heartbeats(Series):
    """The heartbeats of a member of a classic group, in one generation."""

    __slots__ = ()

    API = "Heartbeat"

    def _set_out(self, k: int) -> None:
        self._arrive_later(k, self._arrives)

    def _arrives(self, k: int) -> None:
        if self._is_lost(k):
            return
        self._broker.handle(heartbeat(self._config, self.generation), partial(self._responded, k))

    def _responded(self, k: int, response: Response) -> None:
        assert isinstance(response, HeartbeatResponse)
        self._answered(k, response.error)

    def _tell(self, error: Error) -> None:
        self._sender.heartbeat_answered(error, self.generation)


class BackgroundCommits(Series):
    """The commits of a client by itself: how far the application had come at its last poll()."""

    __slots__ = ("_is_refused", "_records", "_settled")

    API = "OffsetCommit"

    def __init__(
        self,
        network: Network,
        sender: Sender,
        schedule: RequestSchedule,
        on_answer: OnAnswer,
        records: Records,
    ) -> None:
        super().__init__(network, sender, schedule, on_answer)
        self._records = records
        #: The last commit whose positions count.
        self._settled = 0
        self._is_refused = False

    def settle(self) -> None:
        """Let the last computed commit count that has arrived."""
        if self.is_resting:
            self._settle(self.arrived_by_now(self.sent_by_now()))

    def _settle(self, arrived: int) -> None:
        if arrived > self.sent and arrived > self._settled:
            self._accept(arrived, self._positions(arrived))

    def superseded(self) -> None:
        """A later commit of everything has been accepted: those that have arrived by now count no more."""
        self._settled = max(self._settled, self.arrived_by_now(self.sent_by_now()))

    def first_positions_known(self) -> None:
        """There was no position until now, and nothing to commit."""
        self.sent = self.sent_by_now()

    def _accepted_before(self, sent: int, arrived: int) -> int:
        if not self._sender.work.partitions:
            return sent  # there was nothing to commit
        self._settle(arrived)
        return self.sent

    def _positions(self, k: int) -> dict[TopicPartition, int]:
        return self._sender.work.loop.polled_positions(self.schedule.sent_us(k))

    def _set_out(self, k: int) -> None:
        self._arrive_later(k, self._arrives, (self._positions(k), self.generation))

    def _arrives(self, k: int, positions: Mapping[TopicPartition, int], sent: Generation) -> None:
        if self._is_lost(k) or not positions:
            return
        request = commit_request(self._config, positions, sent)
        self._broker.handle(request, partial(self._responded, k, positions))
        if not self._is_refused and not self._broker.is_failing:
            self._accept(k, positions)  # its answer may wait for a write, and says no more

    def _accept(self, k: int, positions: Mapping[TopicPartition, int]) -> None:
        if self._settled < k:
            self._settled = k
            self._records.commit(positions)

    def _responded(self, k: int, positions: Mapping[TopicPartition, int], response: Response) -> None:
        assert isinstance(response, OffsetCommitResponse)
        error = first_error(response)
        if error is NO_ERROR:
            self._accept(k, positions)
        elif error is not Error.COORDINATOR_NOT_AVAILABLE:
            self._is_refused = True  # at once; a write that failed says COORDINATOR_NOT_AVAILABLE
        self._answered(k, error)

    def _tell(self, error: Error) -> None:
        self._sender.membership.commit_answered(error, self.generation)
