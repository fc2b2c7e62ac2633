"""One series of requests of one member: they are sent, or rest and are computed.

A request that is sent is an event when it leaves and another when it arrives. A resting one has been answered
when its latency has passed; what that meant is made up for when the series wakes (`Series.wake`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

from groupstorm.assignors.contract import RebalanceProtocol
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import heartbeat
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import HeartbeatResponse, LeaveGroup, OffsetCommitResponse, Response
from groupstorm.coordinator.timers import SESSION, TimerKind
from groupstorm.storms.records.positions import Work, commit_request
from groupstorm.storms.world.broker import first_error
from groupstorm.storms.world.clock import ClientClock, moment_of
from groupstorm.storms.world.connection import Network, VirtualConnection
from groupstorm.storms.world.periodic_requests.schedule import RequestSchedule
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState


class GroupMember(Protocol):
    """`clients.membership.Membership`, or `consumer_group.view.ConsumerGroupView`."""

    coordinator_known: bool
    #: The exception that poll() throws; None as long as the consumer runs.
    failure: str | None

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the member owns as far as it knows."""

    @property
    def generation(self) -> Generation:
        """The generation and the member id; of a consumer group's member, its epoch and id."""

    @property
    def is_settled(self) -> bool:
        """Whether it has joined and asks for nothing more."""

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next poll() matters to the member."""

    @property
    def awaits_poll(self) -> bool:
        """Whether the member waits for poll() also with a client that joins again at once."""

    @property
    def heartbeating(self) -> bool:
        """Whether it sends heartbeats."""

    @property
    def lost_cause(self) -> str:
        """Why it has lost what it owns; "" if it has not."""

    @property
    def rebalance_protocol(self) -> RebalanceProtocol: ...

    def poll_timed_out(self) -> LeaveGroup | None:
        """max.poll.interval.ms has passed without a poll(). Returns a request to send."""

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """A commit was answered that had been sent in that generation."""


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


class Series(ABC):
    """Requests that rest or are sent. ``resting``: the series that rest, by member id.

    ``sent`` requests of the schedule have left, the last one at ``sent_us``; a resting series does not count
    those that are computed.
    """

    API: ClassVar[str]
    #: The kind of session that an accepted request starts again, and whether it is suspended meanwhile.
    SESSION: ClassVar[TimerKind] = SESSION
    SUSPENDS: ClassVar[bool] = True

    def __init__(
        self, network: Network, connection: VirtualConnection, schedule: RequestSchedule, resting: Requests
    ) -> None:
        self._clock, self._broker = network.clock, network.broker
        self._connection = connection
        self._resting = resting
        self._member_id = ""
        self.schedule = schedule
        self.is_resting = False
        self.sent = self.sent_us = 0

    def _rest_as(self, member_id: str) -> None:
        """Compute the requests of this member from now on."""
        self.is_resting, self._member_id = True, member_id
        self._resting[member_id] = self
        if self.SUSPENDS:
            self._broker.coordinator.suspend_session(member_id)

    def wake(self) -> None:
        """Send the requests from now on."""
        if self.is_resting:
            self._catch_up()
            self.send_next()

    def _catch_up(self) -> None:
        """Rest no more. What has arrived was accepted, and a request that is under way will arrive as an
        event."""
        self.is_resting = False
        member_id, schedule, before = self._member_id, self.schedule, self.sent
        del self._resting[member_id]
        if self.SUSPENDS:
            self._broker.coordinator.resume_session(member_id)
        self.sent = arrived = schedule.last_sent(self._clock.passed_us(schedule.leaves_order), before)
        if arrived > before:
            self.sent_us = sent_us = schedule.sent_us(arrived)
            arrival_us = schedule.arrival_us(sent_us)
            if arrival_us > self._clock.passed_us(schedule.order):
                self._set_out(sent_us)
                arrived -= 1
                sent_us = schedule.sent_us(arrived)
                arrival_us = schedule.arrival_us(sent_us)
            if arrived > before:
                self._broker.count((self.API, None), arrived - before)
                self._broker.in_contact(self.SESSION, member_id, moment_of(arrival_us, schedule.order))
                self._were_accepted(sent_us)

    @abstractmethod
    def send_next(self) -> None:
        """The next request leaves as an event."""

    @abstractmethod
    def _set_out(self, sent_us: int) -> None:
        """The request that left at ``sent_us`` is on its way to the coordinator."""

    def _were_accepted(self, last_us: int) -> None:  # noqa: B027
        """Computed requests were accepted, the last one of which had left at ``last_us``."""


#: Gets each answer that is an error, when the member receives it; and None for those without, at once.
OnAnswer = Callable[[Error | None], None]


#: By member id.
Requests = dict[str, Series]


class RestingMembers:
    """The members whose requests change nothing until something happens to the group, which wakes them.

    ``heartbeats`` and ``commits``: the requests that rest. ``by_hand``: the calls that end
    commits by hand, which are computed all the time until the coordinator refuses them.
    """

    def __init__(self) -> None:
        self.heartbeats: Requests = {}
        self.commits: Requests = {}
        self.by_hand: dict[str, Callable[[], None]] = {}

    def wake_all(self) -> None:
        """Every request may be answered differently from now on, or its response may have to wait."""
        self.wake_heartbeats()
        for commits in tuple(self.commits.values()):
            commits.wake()

    def wake_heartbeats(self) -> None:
        """Every heartbeat may be answered differently from now on."""
        for heartbeats in tuple(self.heartbeats.values()):
            heartbeats.wake()

    def group_changed(self, event: events.Event) -> None:
        """Wake those whose requests the coordinator may answer differently, beside those that a write wakes.

        While a round is open it accepts the commits of the generation before.
        """
        if isinstance(event, events.GroupStateChanged):
            self.wake_heartbeats()
            if event.state == GroupState.COMPLETING_REBALANCE:
                self.wake_all()
                for stop in tuple(self.by_hand.values()):
                    stop()  # the member has not joined: its generation is over
        elif isinstance(event, events.MemberRemoved):
            self._gone(event.member_id)
        elif isinstance(event, events.MemberReplaced):
            self._gone(event.previous_member_id)

    def _gone(self, member_id: str) -> None:
        for requests in (self.heartbeats, self.commits):
            if member_id in requests:
                requests[member_id].wake()
        if member_id in self.by_hand:
            self.by_hand[member_id]()


class SentSeries(Series):
    """Requests that leave by their schedule, whether the one before was answered or not.

    ``on_answer``: see `OnAnswer`. ``generation`` is what those carry that leave now.
    """

    def __init__(
        self,
        network: Network,
        sender: Sender,
        schedule: RequestSchedule,
        resting: Requests,
        on_answer: OnAnswer,
    ) -> None:
        super().__init__(network, sender.connection, schedule, resting)
        self._sender = sender
        self.generation = sender.membership.generation
        self._config = sender.config
        #: Those of the connection when the series began.
        self._epoch, self._losses = sender.connection.epoch, sender.connection.losses
        self._on_answer = on_answer
        self._is_over = False

    def rest(self) -> None:
        """Compute the requests from now on."""
        self.generation = self._sender.membership.generation
        self._rest_as(self.generation.member_id)

    def end(self) -> None:
        """No more requests leave. One that is due at this very instant has left."""
        if self.is_resting:
            self._catch_up()
        sent_us = self.schedule.sent_us(self.sent + 1)
        if sent_us <= self._clock.passed_us(self.schedule.leaves_order):
            self._send(self.sent + 1, sent_us)
        self._is_over = True
        connection = self._connection
        if self.sent and self._epoch == connection.epoch:
            may_be_under_way = self.sent_us + connection.latency.largest_us > self._clock.now_us
            if may_be_under_way:
                arrival_us = self.schedule.arrival_us(self.sent_us)
                connection.requests_until_us = max(connection.requests_until_us, arrival_us)

    def send_next(self) -> None:
        k, now_us = self.sent + 1, self._clock.now_us
        sent_us = self.schedule.sent_us(k)
        leaves_us = sent_us if sent_us > now_us else now_us
        self._clock.in_order(leaves_us, self.schedule.leaves_order, self._send, (k, sent_us))

    def _send(self, k: int, sent_us: int) -> None:
        if self._is_over or self.is_resting or k != self.sent + 1:
            return
        self.sent, self.sent_us = k, sent_us
        self.generation = self._sender.membership.generation
        self._set_out(sent_us)
        self.send_next()

    def _arrive_later(self, sent_us: int, arrive: Callable[..., None], *contents: Any) -> None:
        arrival_us = max(self.schedule.arrival_us(sent_us), self._clock.now_us)
        self._clock.in_order(arrival_us, self.schedule.order, arrive, (sent_us, *contents))

    def _is_lost(self) -> bool:
        """Whether a request, which was to arrive now, was under way when the connection was lost."""
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


class Heartbeats(SentSeries):
    """The heartbeats of a member of a classic group, in one generation."""

    API = "Heartbeat"

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


class BackgroundCommits(SentSeries):
    """The commits of a client by itself: how far the application had come at its last poll()."""

    API = "OffsetCommit"
    SUSPENDS = False

    def _were_accepted(self, last_us: int) -> None:
        self._sender.work.records.commit(self._positions(last_us))

    def _positions(self, sent_us: int) -> dict[TopicPartition, int]:
        return self._sender.work.loop.polled_positions(sent_us)

    def _set_out(self, sent_us: int) -> None:
        self._arrive_later(sent_us, self._arrives, self._positions(sent_us), self.generation)

    def _arrives(self, sent_us: int, positions: Mapping[TopicPartition, int], sent: Generation) -> None:
        if self._is_lost() or not positions:
            return
        request = commit_request(self._config, positions, sent)
        self._broker.handle(request, partial(self._responded, sent_us))

    def _responded(self, sent_us: int, response: Response) -> None:
        assert isinstance(response, OffsetCommitResponse)
        self._answered(sent_us, first_error(response))

    def _tell(self, error: Error) -> None:
        self._sender.membership.commit_answered(error, self.generation)
