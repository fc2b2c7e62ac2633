"""Heartbeats of a member of a consumer group, computed as long as nothing happens.

While its group is Stable, a heartbeat changes nothing: the coordinator begins the session anew and answers
with the epoch alone. Then no heartbeat is sent. When something happens, to the group or to the process, the
last heartbeat that would have been sent is put where it would be: answered, or its answer on the way back, or
itself on the way to the coordinator. From then on every heartbeat is sent, until all is quiet again.
`ConsumerGroupRequests` are the background commits, and what disturbs the heartbeats.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Protocol

from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import HeartbeatResponse, SendHeartbeat
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.timers import MEMBER_SESSION
from groupstorm.storms.world.clock import Kind
from groupstorm.storms.world.consumer_group.network_thread import GroupProcess
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.schedule import ProcessTimer, RequestSchedule
from groupstorm.storms.world.periodic_requests.series import Sender, Series


class QuietHeartbeats(Series):
    """The heartbeats of one process. Each leaves an interval after the one before while they rest; else the
    member says when. ``RESPONSE``: the type of their answers."""

    API = "ConsumerGroupHeartbeat"
    SESSION = MEMBER_SESSION
    RESPONSE: ClassVar[type[HeartbeatResponse]] = ConsumerGroupHeartbeatResponse

    def __init__(self, environment: Environment, process: GroupProcess) -> None:
        resting = environment.resting.heartbeats
        super().__init__(environment.network, process.connection, _schedule(process, 0), resting)
        self._environment = environment
        self._process = process

    def rest_from(self, due_ms: int) -> bool:
        """Compute them from now on if nothing disturbs them; the first one leaves when the machine's clock
        shows ``due_ms``. Returns whether that is so."""
        process = self._process
        member = process.group_member
        if (
            self._environment.sends_heartbeats
            or process.client_clock.drifts
            or member.state is not MemberState.STABLE
            or process.connection.in_flight
            or not process.settled
            or process.topics_to_tell
            or member.missed_an_answer
            or member.backs_off(process.client_clock.ms(self._clock.now_us))
            or not self._broker.is_quiet(member.member_id, member.epoch)
        ):
            return False
        self.schedule, self.sent = _schedule(process, due_ms), 0
        self._rest_as(member.member_id)
        return True

    def wake(self) -> None:
        if self.is_resting:
            self._process.note_polls()
        super().wake()

    def send_next(self) -> None:
        self._process.network_thread.run_at(self.schedule.sent_us(self.sent + 1) // 1000)

    def _set_out(self, sent_us: int) -> None:
        self._overtake(sent_us, None)

    def _were_accepted(self, last_us: int) -> None:
        if last_us == self.sent_us:
            member, interval_ms = self._process.group_member, self.schedule.interval_us // 1000
            self._overtake(last_us, self.RESPONSE(NO_ERROR, member.member_id, member.epoch, interval_ms))

    def _overtake(self, sent_us: int, response: HeartbeatResponse | None) -> None:
        """Put the last heartbeat, or its response, where it is."""
        process, connection = self._process, self._connection
        process.group_member.step(sent_us // 1000)
        for operation in process.group_member.operations():
            assert isinstance(operation, SendHeartbeat), operation
            answered_us = self.schedule.arrival_us(sent_us) + connection.periodic_response_latency_us(sent_us)
            if response is not None and answered_us <= self._clock.passed_us(connection.response_order):
                process.group_member.answered(operation, response, answered_us // 1000)
            else:
                timeout_ms, take = (
                    process.config.request_timeout_ms,
                    partial(process.network_thread.answered, operation),
                )
                connection.overtake(operation.request, sent_us, timeout_ms, take, response)


def _schedule(process: GroupProcess, first_ms: int) -> RequestSchedule:
    interval_us = process.group_member.heartbeat_interval_ms * 1000
    start_us, leaves = first_ms * 1000 - interval_us, Kind.NETWORK_THREAD
    return RequestSchedule(Kind.REQUEST_ARRIVES, start_us, interval_us, process.connection, leaves=leaves)


class HeartbeatingProcess(Sender, GroupProcess, Protocol):
    """A process that commits, too."""


class ConsumerGroupRequests(PeriodicRequests):
    """The background commits of one process. Its heartbeats are the member's own: whatever may disturb them
    ends their being computed."""

    def __init__(self, environment: Environment, process: HeartbeatingProcess) -> None:
        no_timer = ProcessTimer(None, environment.seed, process.config.client_id, 0)
        sends = environment.sends_heartbeats
        super().__init__(environment.network, environment.resting, no_timer, sends, process)
        self._process = process
        self._own_heartbeats = QuietHeartbeats(environment, process)

    def rest_from(self, due_ms: int) -> bool:
        """Compute them from now on if nothing disturbs them. Returns whether that is so."""
        rests = self._own_heartbeats.rest_from(due_ms)
        if rests:
            self.rest()
        return rests

    def follow_membership(self) -> None:
        """The member itself knows when it sends heartbeats."""

    def stop(self) -> None:
        self.wake_heartbeats()
        super().stop()

    def restart(self) -> None:
        self._process.network_thread.runs_again()
        self.restart_commits()

    def next_heartbeat_us(self) -> int:
        self.wake_heartbeats()
        return self._process.network_thread.next_run_us()

    def _heartbeats_rest(self) -> bool:
        return self._own_heartbeats.is_resting

    def wake_heartbeats(self) -> None:
        self._own_heartbeats.wake()
