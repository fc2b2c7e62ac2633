"""One series of heartbeats or background commits: its requests are sent, or rest and are computed.

A request that is sent is an event when it leaves and another when it arrives. A resting one has been answered
when its latency has passed; what that meant is made up for when the series wakes (`Series.wake`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import heartbeat
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import HeartbeatResponse, OffsetCommitResponse, Response
from groupstorm.coordinator.timers import SESSION
from groupstorm.storms.records.positions import Records, Work, commit_request
from groupstorm.storms.world.clock import ClientClock, moment_of
from groupstorm.storms.world.connection import Network, VirtualConnection
from groupstorm.storms.world.group_member import GroupMember
from groupstorm.storms.world.periodic_requests.resting import Computed
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

    ``on_answer``: see `OnAnswer`. ``resting``: the series that rest, by member id. ``sent`` requests have
    left, the last one at ``sent_us``; a resting series does not count those that are computed.
    """

    __slots__ = (
        "_broker",
        "_clock",
        "_config",
        "_connection",
        "_epoch",
        "_is_over",
        "_losses",
        "_on_answer",
        "_resting",
        "_scheduled",
        "_sender",
        "generation",
        "is_resting",
        "schedule",
        "sent",
        "sent_us",
        "under_way",
    )

    API: ClassVar[str]

    def __init__(
        self,
        network: Network,
        sender: Sender,
        schedule: RequestSchedule,
        on_answer: OnAnswer,
        resting: dict[str, Computed],
    ) -> None:
        self._clock = network.clock
        self._broker = network.broker
        self._sender = sender
        self._config = sender.config
        self._connection = sender.connection
        #: Those of the connection when the series began.
        self._epoch, self._losses = sender.connection.epoch, sender.connection.losses
        self._on_answer = on_answer
        self._resting = resting
        self.schedule = schedule
        self.generation = sender.membership.generation
        self.is_resting = False
        self.sent = self.sent_us = 0
        #: The number of requests that were sent and have not arrived.
        self.under_way = 0
        #: The last request for whose leaving there is an event.
        self._scheduled = 0
        self._is_over = False

    # -- it rests, wakes and ends ----------------------------------------------------------------

    def rest(self) -> None:
        """Compute the requests from now on."""
        self.is_resting, self.generation = True, self._sender.membership.generation
        self._resting[self.generation.member_id] = self

    def wake(self) -> None:
        """Send the requests from now on. What has arrived was accepted, and a request that is under way will
        arrive as an event."""
        if not self.is_resting:
            return
        self.is_resting = False
        del self._resting[self.generation.member_id]
        schedule, clock, before = self.schedule, self._clock, self.sent
        self.sent = arrived = schedule.last_sent(clock.passed_us(schedule.leaves_order), before)
        if arrived > before:
            self.sent_us = sent_us = schedule.sent_us(arrived)
            arrival_us = schedule.arrival_us(sent_us)
            if arrival_us > clock.passed_us(schedule.order):
                self._set_out(sent_us)
                arrived -= 1
                sent_us = schedule.sent_us(arrived)
                arrival_us = schedule.arrival_us(sent_us)
            if arrived > before:
                self._broker.count((self.API, None), arrived - before)
                moment = moment_of(arrival_us, schedule.order)
                self._broker.in_contact(SESSION, self.generation.member_id, moment)
                self._were_accepted(sent_us)
        self.send_next()

    @abstractmethod
    def _were_accepted(self, last_us: int) -> None:
        """Computed requests were accepted, the last one of which had left at ``last_us``."""

    def end(self) -> None:
        """No more requests leave. One that is due at this very instant has left."""
        self.wake()
        sent_us = self.schedule.sent_us(self.sent + 1)
        if sent_us <= self._clock.passed_us(self.schedule.leaves_order):
            self._send(self.sent + 1, sent_us)
        self._is_over = True

    # -- requests are sent -----------------------------------------------------------------------

    def send_next(self) -> None:
        """The next request leaves as an event."""
        k = self.sent + 1
        if k != self._scheduled:
            self._scheduled = k
            sent_us = self.schedule.sent_us(k)
            leaves_us = max(sent_us, self._clock.now_us)
            self._clock.in_order(leaves_us, self.schedule.leaves_order, self._send, (k, sent_us))

    def _send(self, k: int, sent_us: int) -> None:
        if self._is_over or self.is_resting or k != self.sent + 1:
            return
        self.sent, self.sent_us = k, sent_us
        self.generation = self._sender.membership.generation
        self._set_out(sent_us)
        self.send_next()

    @abstractmethod
    def _set_out(self, sent_us: int) -> None:
        """The request that left at ``sent_us`` is on its way to the coordinator."""

    def _arrive_later(self, sent_us: int, arrive: Callable[..., None], *contents: Any) -> None:
        self.under_way += 1
        arrival_us = max(self.schedule.arrival_us(sent_us), self._clock.now_us)
        self._clock.in_order(arrival_us, self.schedule.order, arrive, (sent_us, *contents))

    def _is_lost(self) -> bool:
        """Whether a request, which was to arrive now, was under way when the connection was lost."""
        self.under_way -= 1
        return self._losses != self._connection.losses

    def _answered(self, sent_us: int, error: Error) -> None:
        """The coordinator has answered: an error travels to the member, which goes on as before without."""
        if error is NO_ERROR:
            self._on_answer(None)
            return
        connection = self._connection
        latency_us = connection.periodic_response_latency_us(sent_us)
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

    def rest(self) -> None:
        super().rest()
        self._broker.suspend_session(self.generation.member_id)

    def wake(self) -> None:
        if self.is_resting:
            self._broker.resume_session(self.generation.member_id)
        super().wake()

    def _were_accepted(self, _: int) -> None:
        """They have started the session again, and no more."""

    def _set_out(self, sent_us: int) -> None:
        self._arrive_later(sent_us, self._arrives)

    def _arrives(self, sent_us: int) -> None:
        if not self._is_lost():
            self._broker.handle(heartbeat(self._config, self.generation), partial(self._responded, sent_us))

    def _responded(self, sent_us: int, response: Response) -> None:
        assert isinstance(response, HeartbeatResponse)
        self._answered(sent_us, response.error)

    def _tell(self, error: Error) -> None:
        self._sender.heartbeat_answered(error, self.generation)


class BackgroundCommits(Series):
    """The commits of a client by itself: how far the application had come at its last poll()."""

    __slots__ = ("_accepted_us", "_is_refused", "_records")

    API = "OffsetCommit"

    def __init__(
        self,
        network: Network,
        sender: Sender,
        schedule: RequestSchedule,
        on_answer: OnAnswer,
        resting: dict[str, Computed],
        records: Records,
    ) -> None:
        super().__init__(network, sender, schedule, on_answer, resting)
        self._records = records
        #: When the last commit left that was accepted.
        self._accepted_us = 0
        self._is_refused = False

    def _were_accepted(self, last_us: int) -> None:
        self._accept(last_us, self._positions(last_us))

    def _positions(self, sent_us: int) -> dict[TopicPartition, int]:
        return self._sender.work.loop.polled_positions(sent_us)

    def _set_out(self, sent_us: int) -> None:
        self._arrive_later(sent_us, self._arrives, self._positions(sent_us), self.generation)

    def _arrives(self, sent_us: int, positions: Mapping[TopicPartition, int], sent: Generation) -> None:
        if self._is_lost() or not positions:
            return
        request = commit_request(self._config, positions, sent)
        self._broker.handle(request, partial(self._responded, sent_us, positions))
        if not self._is_refused and not self._broker.is_failing:
            self._accept(sent_us, positions)  # its answer may wait for a write, and says no more

    def _accept(self, sent_us: int, positions: Mapping[TopicPartition, int]) -> None:
        if self._accepted_us < sent_us:
            self._accepted_us = sent_us
            self._records.commit(positions)

    def _responded(self, sent_us: int, positions: Mapping[TopicPartition, int], response: Response) -> None:
        assert isinstance(response, OffsetCommitResponse)
        error = first_error(response)
        if error is NO_ERROR:
            self._accept(sent_us, positions)
        elif error is not Error.COORDINATOR_NOT_AVAILABLE:
            self._is_refused = True  # at once; a write that failed says COORDINATOR_NOT_AVAILABLE
        self._answered(sent_us, error)

    def _tell(self, error: Error) -> None:
        self._sender.membership.commit_answered(error, self.generation)
