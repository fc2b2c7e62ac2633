"""Heartbeats of a member of a consumer group, computed as long as nothing happens.

While its group is Stable, a heartbeat changes nothing: the coordinator begins the session anew and answers
with the epoch alone. Then no heartbeat is sent. When something happens, to the group or to the process, the
last heartbeat that would have been sent is put where it would be: answered, or its answer on the way back, or
itself on the way to the coordinator. From then on every heartbeat is sent, until all is quiet again.
`ConsumerGroupRequests` are the background commits, and what disturbs the heartbeats.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import Disconnected, SendHeartbeat
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse, Response
from groupstorm.coordinator.timers import MEMBER_SESSION
from groupstorm.storms.world.clock import ClientClock, Kind, moment_of, order_of
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests import PeriodicRequests, ProcessTimer, Sender


class Resting(Protocol):
    """The periodic requests of a process."""

    def rest(self) -> None:
        """Compute them from now on."""
        ...


class BeatingProcess(Protocol):
    """The process whose member it is."""

    client_clock: ClientClock
    config: ConsumerConfig
    connection: VirtualConnection
    group_member: HeartbeatingMember[Any]
    index: int
    topics_to_tell: bool

    @property
    def periodic_requests(self) -> Resting: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        ...

    def note_polls(self) -> None:
        """Tell the member of the application's last poll()."""
        ...

    def run_network_thread_at(self, shown_ms: int) -> None:
        """Let the client's network thread run next when its clock shows ``shown_ms``."""
        ...

    def answered(self, sent: SendHeartbeat, response: Response | Disconnected) -> None:
        """A heartbeat was answered."""
        ...


class QuietHeartbeats:
    """The heartbeats of one process: each leaves ``interval_ms`` after the one before."""

    __slots__ = ("_due_ms", "_environment", "_interval_ms", "_process")

    def __init__(self, environment: Environment, process: BeatingProcess) -> None:
        self._environment = environment
        self._process = process
        #: When the first of them leaves, on the machine's clock; None: they are sent.
        self._due_ms: int | None = None
        self._interval_ms = 0

    @property
    def is_quiet(self) -> bool:
        return self._due_ms is not None

    def rest(self, due_ms: int) -> bool:
        """Compute them from now on if nothing disturbs them. Returns whether that is so."""
        process, environment = self._process, self._environment
        member = process.group_member
        if (
            environment.sends_heartbeats
            or member.state is not MemberState.STABLE
            or process.connection.in_flight
            or not process.settled
            or process.topics_to_tell
            or member.missed_an_answer
            or member.backs_off(process.client_clock.ms(environment.clock.now_us))
            or not environment.broker.is_quiet(member.member_id, member.epoch)
        ):
            return False
        self._due_ms, self._interval_ms = due_ms, member.heartbeat_interval_ms
        environment.resting.heartbeats[member.member_id] = self
        environment.broker.suspend_session(member.member_id)
        process.periodic_requests.rest()
        return True

    def wake(self) -> None:
        """Send them from now on."""
        first_ms, self._due_ms = self._due_ms, None
        if first_ms is None:
            return
        process, interval_ms = self._process, self._interval_ms
        member_id = process.group_member.member_id
        del self._environment.resting.heartbeats[member_id]
        self._environment.broker.resume_session(member_id)
        process.note_polls()
        ran_us = process.connection.clock.passed_us(order_of(Kind.NETWORK_THREAD, process.index))
        shown_ms = process.client_clock.ms(ran_us)
        sent = 0 if shown_ms < first_ms else (shown_ms - first_ms) // interval_ms + 1
        if sent:
            self._overtake(first_ms, sent)
        process.run_network_thread_at(first_ms + sent * interval_ms)

    def _overtake(self, first_ms: int, sent: int) -> None:
        """Put the last heartbeat where it is, as ``sent`` of them have left by now."""
        process = self._process
        connection, member = process.connection, process.group_member
        broker, clock = connection.broker, connection.clock
        last_ms = first_ms + (sent - 1) * self._interval_ms
        sent_us = process.client_clock.us(last_ms)
        arrival_us = contact_us = sent_us + connection.periodic_latency_us(sent_us)
        is_under_way = arrival_us > clock.passed_us(connection.request_order)
        if is_under_way:
            sent -= 1
            before_us = process.client_clock.us(last_ms - self._interval_ms)
            contact_us = before_us + connection.periodic_latency_us(before_us)
        if sent:
            broker.count(("ConsumerGroupHeartbeat", None), sent)
            broker.in_contact(
                MEMBER_SESSION, member.member_id, moment_of(contact_us, connection.request_order)
            )
        member.step(last_ms)
        for operation in member.operations():
            assert isinstance(operation, SendHeartbeat), operation
            take = partial(process.answered, operation)
            if is_under_way:
                connection.overtake(operation.request, sent_us, process.config.request_timeout_ms, take)
                continue
            response = ConsumerGroupHeartbeatResponse(
                NO_ERROR, member.member_id, member.epoch, self._interval_ms
            )
            answered_us = arrival_us + connection.periodic_response_latency_us(sent_us)
            if answered_us > clock.passed_us(connection.response_order):
                connection.overtake_response(operation.request, sent_us, answered_us, response, take)
            else:
                member.answered(operation, response, process.client_clock.ms(answered_us))


class HeartbeatingProcess(Sender, Protocol):
    """The process that sends them."""

    def next_network_run_us(self) -> int:
        """When the client's network thread runs next."""
        ...

    def runs_again(self) -> None:
        """The process stood still, or nothing came through."""
        ...


class ConsumerGroupRequests(PeriodicRequests):
    """The background commits of one process. Its heartbeats are the member's own: whatever may disturb them
    ends their being computed."""

    __slots__ = ("_own_heartbeats", "_process")

    def __init__(
        self, environment: Environment, process: HeartbeatingProcess, heartbeats: QuietHeartbeats
    ) -> None:
        no_timer = ProcessTimer(None, environment.seed, process.config.client_id, 0)
        super().__init__(
            environment.network,
            environment.records,
            environment.resting,
            no_timer,
            environment.sends_heartbeats,
            process,
        )
        self._process = process
        self._own_heartbeats = heartbeats

    def follow_membership(self) -> None:
        """The member itself knows when it sends heartbeats."""

    def stop(self) -> None:
        self.wake_heartbeats()
        super().stop()

    def restart(self) -> None:
        self._process.runs_again()
        self.restart_commits()

    def next_heartbeat_us(self) -> int:
        self.wake_heartbeats()
        return self._process.next_network_run_us()

    def _heartbeats_rest(self) -> bool:
        return self._own_heartbeats.is_quiet

    def wake_heartbeats(self) -> None:
        self._own_heartbeats.wake()
