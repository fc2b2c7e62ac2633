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

from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import Disconnected, SendHeartbeat
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse, Response
from groupstorm.coordinator.timers import MEMBER_SESSION
from groupstorm.storms.world.clock import Kind
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.schedule import ProcessTimer, RequestSchedule
from groupstorm.storms.world.periodic_requests.series import Sender, Series


class HeartbeatingProcess(Sender, Protocol):
    """The process whose member sends them."""

    group_member: HeartbeatingMember[Any]
    topics_to_tell: bool

    def note_polls(self) -> None:
        """Tell the member of the application's last poll()."""
        ...

    def answered(self, sent: SendHeartbeat, response: Response | Disconnected) -> None:
        """A heartbeat was answered."""
        ...

    def run_network_thread_at(self, shown_ms: int) -> None:
        """Let the client's network thread run next when its clock shows ``shown_ms``."""
        ...

    def next_network_run_us(self) -> int:
        """When the client's network thread runs next."""
        ...

    def runs_again(self) -> None:
        """The process stood still, or nothing came through."""
        ...


class QuietHeartbeats(Series):
    """The heartbeats of one process. Each leaves an interval after the one before while they rest; else the
    member says when."""

    __slots__ = ("_process",)

    API = "ConsumerGroupHeartbeat"
    SESSION = MEMBER_SESSION

    def __init__(self, environment: Environment, process: HeartbeatingProcess) -> None:
        super().__init__(environment.network, process, _schedule(process, 0), environment.resting.heartbeats)
        self._process = process

    def is_quiet(self) -> bool:
        """Whether a heartbeat that leaves now changes nothing, and is answered before the next one."""
        process = self._process
        member = process.group_member
        return (
            member.state is MemberState.STABLE
            and not process.connection.in_flight
            and process.settled
            and not process.topics_to_tell
            and not member.missed_an_answer
            and not member.backs_off(process.client_clock.ms(self._clock.now_us))
            and self._broker.is_quiet(member.member_id, member.epoch)
        )

    def rest_from(self, due_ms: int) -> None:
        """Compute them from now on. The first one leaves when the machine's clock shows ``due_ms``."""
        self.schedule, self.sent = _schedule(self._process, due_ms), 0
        self.rest()

    def wake(self) -> None:
        if self.is_resting:
            self._process.note_polls()
        super().wake()

    def send_next(self) -> None:
        self._process.run_network_thread_at(self.schedule.sent_us(self.sent + 1) // 1000)

    def _set_out(self, sent_us: int) -> None:
        self._overtake(sent_us, None)

    def _were_accepted(self, last_us: int) -> None:
        if last_us == self.sent_us:
            member, interval_ms = self._process.group_member, self.schedule.interval_us // 1000
            self._overtake(
                last_us,
                ConsumerGroupHeartbeatResponse(NO_ERROR, member.member_id, member.epoch, interval_ms),
            )

    def _overtake(self, sent_us: int, response: ConsumerGroupHeartbeatResponse | None) -> None:
        """Put the last heartbeat, or its response, where it is."""
        process, connection = self._process, self._connection
        process.group_member.step(sent_us // 1000)
        for operation in process.group_member.operations():
            assert isinstance(operation, SendHeartbeat), operation
            answered_us = self.schedule.arrival_us(sent_us) + connection.periodic_response_latency_us(sent_us)
            if response is not None and answered_us <= self._clock.passed_us(connection.response_order):
                process.group_member.answered(operation, response, answered_us // 1000)
            else:
                timeout_ms, take = process.config.request_timeout_ms, partial(process.answered, operation)
                connection.overtake(operation.request, sent_us, timeout_ms, take, response)


def _schedule(process: HeartbeatingProcess, first_ms: int) -> RequestSchedule:
    interval_us = process.group_member.heartbeat_interval_ms * 1000
    start_us, leaves = first_ms * 1000 - interval_us, Kind.NETWORK_THREAD
    return RequestSchedule(Kind.REQUEST_ARRIVES, start_us, interval_us, process.connection, leaves=leaves)


class ConsumerGroupRequests(PeriodicRequests):
    """The background commits of one process. Its heartbeats are the member's own: whatever may disturb them
    ends their being computed."""

    __slots__ = ("_own_heartbeats", "_process")

    def __init__(self, environment: Environment, process: HeartbeatingProcess) -> None:
        no_timer = ProcessTimer(None, environment.seed, process.config.client_id, 0)
        sends = environment.sends_heartbeats or process.client_clock.drifts
        super().__init__(environment.network, environment.resting, no_timer, sends, process)
        self._process = process
        self._own_heartbeats = QuietHeartbeats(environment, process)

    def rest_from(self, due_ms: int) -> bool:
        """Compute them from now on if nothing disturbs them. Returns whether that is so."""
        if self._exact or not self._own_heartbeats.is_quiet():
            return False
        self._own_heartbeats.rest_from(due_ms)
        self.rest()
        return True

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
        return self._own_heartbeats.is_resting

    def wake_heartbeats(self) -> None:
        self._own_heartbeats.wake()
