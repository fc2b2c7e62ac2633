"""The network thread of a client whose broker assigns: it runs at the instants that its member names.

It sends heartbeats and looks for the coordinator; what else the member asks for, its process does. It runs
after every call of the application and every response too. While the group is Stable, nothing but heartbeats
would happen; then they are computed, and the thread is not scheduled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from groupstorm.assignors.contract import COOPERATIVE
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.states import NOT_IN_GROUP, MemberState
from groupstorm.clients.consumer_group.timing import FOREVER_MS
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import (
    Disconnected,
    FindCoordinator,
    GroupOperation,
    HeartbeatResponse,
    RefreshTopics,
    SendHeartbeat,
)
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import LeaveGroup, Response
from groupstorm.storms.world.clock import ClientClock, Clock, Kind, order_of
from groupstorm.storms.world.connection import VirtualConnection


class Standstill(Protocol):
    """The pauses of a process."""

    paused_until_us: int


class GroupProcess(Protocol):
    """The process whose client it is. ``topics_to_tell``: the next heartbeat tells another subscription."""

    alive: bool
    client_clock: ClientClock
    clock: Clock
    closing: bool
    config: ConsumerConfig
    connection: VirtualConnection
    group_member: HeartbeatingMember[Any]
    index: int
    network_thread: NetworkThread
    started: bool
    topics_to_tell: bool

    @property
    def pauses(self) -> Standstill: ...

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""

    def carry_out(self, operation: GroupOperation) -> None:
        """Do what the member asks for, beside heartbeats and looks for the coordinator."""

    def refresh_topics(self) -> None:
        """The client fetches metadata now."""

    def note_polls(self) -> None:
        """Tell the member of the application's last poll()."""

    def nudge(self) -> None:
        """The application looks at its next poll()."""


class NetworkThread:
    """The network thread of one process.

    ``rest(due_ms)``: returns whether the heartbeats from ``due_ms`` on, by the machine's clock, are computed;
    ``wake`` ends that. ``state_changed``: called with the state that the member has left.
    """

    def __init__(
        self,
        process: GroupProcess,
        rest: Callable[[int], bool],
        wake: Callable[[], None],
        state_changed: Callable[[MemberState], None] = lambda _: None,
    ) -> None:
        self._process = process
        self._rest = rest
        self._wake = wake
        self._state_changed = state_changed
        self._state = process.group_member.state
        self._seeks_coordinator = False
        #: When it runs next (-1: not before somebody says so), and all times for which there is an event.
        self._next_us = -1
        self._scheduled_us: set[int] = set()
        #: When its next run is due, on the machine's clock.
        self._due_ms = 0
        #: When it was last asked for names of topics.
        self._asked_us = -1

    def turn(self) -> None:
        """Do what the member asks for, run until it asks for nothing more, and say when it runs next."""
        process, now_ms = self._process, self.now_ms
        wait_ms = 0
        self._carry_out()
        while process.alive:
            wait_ms = process.group_member.step(now_ms)
            if not self._carry_out():
                break
        if not process.alive:
            return
        self._next_us = -1
        if 0 < wait_ms < FOREVER_MS:
            self._due_ms = now_ms + wait_ms
            if not self._rest(self._due_ms):
                self.run_at(self._due_ms)
        if not process.closing:
            process.nudge()

    def _carry_out(self) -> bool:
        """Do what the member asks for. Returns whether that may bring it further: names of topics, for which
        it asks at each step until it has them, do so once at an instant."""
        process, is_done = self._process, False
        operations = process.group_member.operations()
        for operation in operations:
            if isinstance(operation, SendHeartbeat):
                self._send(operation)
            elif isinstance(operation, FindCoordinator):
                self.find_coordinator()
            elif isinstance(operation, RefreshTopics):
                if self._asked_us == process.clock.now_us:
                    continue
                self._asked_us = process.clock.now_us
                backoff_us = process.client_clock.timer_us(process.config.retry_backoff_ms)
                process.clock.after(backoff_us, process.refresh_topics)
            else:
                process.carry_out(operation)
            is_done = True
        before, self._state = self._state, process.group_member.state
        if self._state is not before:
            self._state_changed(before)
        return is_done

    def run_at(self, shown_ms: int) -> None:
        """Run next when the machine's clock shows ``shown_ms``."""
        self._due_ms = shown_ms
        self._schedule(self.next_run_us())

    def _schedule(self, time_us: int) -> None:
        """Run next then. An event that there is already will do: most runs put the next one off to where it
        was."""
        self._next_us = time_us
        if time_us not in self._scheduled_us:
            self._scheduled_us.add(time_us)
            order = order_of(Kind.NETWORK_THREAD, self._process.index)
            self._process.clock.in_order(time_us, order, self._run)

    def next_run_us(self) -> int:
        process = self._process
        return max(process.client_clock.us(self._due_ms), process.clock.now_us)

    @property
    def now_ms(self) -> int:
        return self._process.client_clock.ms(self._process.clock.now_us)

    def _run(self) -> None:
        process, now_us = self._process, self._process.clock.now_us
        self._scheduled_us.discard(now_us)
        if now_us != self._next_us or not process.alive:
            return
        if now_us < process.pauses.paused_until_us:
            self._schedule(process.pauses.paused_until_us)
            return
        process.note_polls()
        self.turn()

    # -- what wakes the client -------------------------------------------------------------------

    def runs_again(self) -> None:
        """The process stood still, or nothing came through, or topics have changed."""
        if self._process.alive and self._process.started and not self.stands_still(self.runs_again):
            self.wake()
            self.turn()

    def wake(self) -> None:
        """Something happens: heartbeats are sent from now on, and the member knows of the last poll()."""
        self._wake()
        self._process.note_polls()

    def stands_still(self, then: Callable[..., None], *arguments: Any) -> bool:
        """Whether the process stands still; then it goes on with this when it runs again."""
        clock, paused_until_us = self._process.clock, self._process.pauses.paused_until_us
        if clock.now_us < paused_until_us:
            clock.at(paused_until_us, then, *arguments)
            return True
        return False

    def awake(self, take: Callable[..., None], *arguments: Any) -> bool:
        """Whether the process runs; if it stands still, it takes the result when it runs again."""
        if not self._process.alive or self.stands_still(take, *arguments):
            return False
        self.wake()
        return True

    # -- heartbeats, the coordinator -------------------------------------------------------------

    def _send(self, operation: SendHeartbeat) -> None:
        process = self._process
        process.topics_to_tell = False
        take = partial(self.answered, operation)
        process.connection.send(operation.request, process.config.request_timeout_ms, take, periodic=True)

    def answered(self, sent: SendHeartbeat, response: Response | Disconnected) -> None:
        """A heartbeat was answered."""
        if self.awake(self.answered, sent, response):
            assert isinstance(response, HeartbeatResponse | Disconnected)
            self._process.group_member.answered(sent, response, self.now_ms)
            self.turn()

    def lose_coordinator(self) -> None:
        """The client learns that there is no coordinator."""
        self._process.group_member.coordinator_known = False
        self.find_coordinator()

    def find_coordinator(self) -> None:
        if not self._seeks_coordinator:
            self._seeks_coordinator = True
            self._process.clock.after(0, self._process.connection.find_coordinator, self._coordinator_found)

    def _coordinator_found(self) -> None:
        if not self.awake(self._coordinator_found):
            return
        self._seeks_coordinator = False
        if self._process.connection.broken:
            self.find_coordinator()
            return
        self._process.group_member.coordinator_found()
        self.turn()

    # -- the end ---------------------------------------------------------------------------------

    def leave(self) -> None:
        """close(): the member leaves."""
        self._process.group_member.close()
        self.turn()

    def end(self) -> None:
        """The time of close() is over."""
        self._process.group_member.end()
        self._carry_out()


class ConsumerGroupView:
    """``on_coordinator_lost``: called if the client learns that there is no coordinator; ``on_poll_late``: if
    max.poll.interval.ms has passed since the last poll()."""

    #: Every member keeps what it is not asked to give up.
    rebalance_protocol = COOPERATIVE
    #: The member itself asks for onPartitionsLost.
    lost_cause = ""
    #: Reconciliations and callbacks begin in poll().
    awaits_poll = True

    def __init__(
        self,
        member: HeartbeatingMember[Any],
        on_coordinator_lost: Callable[[], None],
        on_poll_late: Callable[[], None],
    ) -> None:
        self._member = member
        self._on_coordinator_lost = on_coordinator_lost
        self._on_poll_late = on_poll_late
        self._generation = Generation(member.epoch, member.member_id)
        #: The number of callbacks that wait for a poll().
        self.callbacks_due = 0
        self.failure: str | None = None

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self._member.owned

    @property
    def generation(self) -> Generation:
        """The member's epoch and id."""
        if self._generation.id != self._member.epoch:
            self._generation = Generation(self._member.epoch, self._member.member_id)
        return self._generation

    @property
    def is_settled(self) -> bool:
        return self._member.state is MemberState.STABLE and not self.rejoin_needed

    @property
    def rejoin_needed(self) -> bool:
        return self.callbacks_due > 0 or self._member.waits_for_poll

    @property
    def heartbeating(self) -> bool:
        return self._member.state not in NOT_IN_GROUP

    @property
    def coordinator_known(self) -> bool:
        return self._member.coordinator_known

    @coordinator_known.setter
    def coordinator_known(self, known: bool) -> None:
        if not known:
            self._on_coordinator_lost()

    def poll_timed_out(self) -> LeaveGroup | None:
        """The member notices it when its network thread runs next, and leaves with a heartbeat."""
        self._on_poll_late()
        return None

    def commit_answered(self, error: Error, sent: Generation) -> None:
        """Heartbeats alone tell a member that it is out of the group."""
