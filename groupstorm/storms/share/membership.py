"""The membership of one share consumer in virtual time: its heartbeats, coordinator, metadata and pauses.

Kafka: ShareConsumerImpl's network thread, ShareHeartbeatRequestManager.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ShareGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import (
    Disconnected,
    FindCoordinator,
    GroupOperation,
    HeartbeatResponse,
    Left,
    RefreshTopics,
    ReportError,
    SendHeartbeat,
)
from groupstorm.coordinator.messages import Response
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.share_records.ports import TopicPartition
from groupstorm.storms.world.broker import topic_id
from groupstorm.storms.world.clock import ClientClock, Clock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.consumer_group.network_thread import NetworkThread
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.draws import drawn_member_id
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.topics import ClientMetadata


class ShareHeartbeats(QuietHeartbeats):
    """The heartbeats of one process."""

    API = "ShareGroupHeartbeat"
    RESPONSE = ShareGroupHeartbeatResponse


class SharePauses:
    """The time until which a process stands still."""

    def __init__(self, clock: Clock, process: ShareMembership) -> None:
        self.paused_until_us = 0
        self._clock = clock
        self._process = process

    def pause(self, duration_us: int) -> None:
        """The process stands still: no heartbeat, no fetch, no work (SIGSTOP); its connections stay."""
        process, until_us = self._process, self._clock.now_us + duration_us
        if not process.alive or until_us <= self.paused_until_us:
            return
        process.heartbeats.wake()
        process.work_takes_longer(until_us - max(self._clock.now_us, self.paused_until_us), also_next=False)
        self.paused_until_us = until_us
        self._clock.at(until_us, process.runs_again)

    def busy(self, duration_us: int) -> None:
        """The application takes so much longer for its records; heartbeats go on."""
        if self._process.alive:
            self._process.work_takes_longer(duration_us, also_next=True)


CLOSED, CRASHED, FAILED = "closed", "crashed", "failed"


class ShareMembership(ABC):
    """A client in a share group, whatever its application does."""

    #: Its subscription does not change.
    topics_to_tell = False

    def __init__(
        self, environment: Environment, index: int, incarnation: int, config: ConsumerConfig
    ) -> None:
        self._environment = environment
        self.clock = environment.clock
        self.index = index
        self.name = config.client_id
        self.config = config
        self.alive = True
        self.started = False
        #: The application has called close().
        self.closing = False
        self.client_clock = ClientClock(0)
        self.connection = VirtualConnection(
            environment.network,
            index,
            self.name,
            incarnation,
            lambda _step, _response: None,
            self.client_clock,
        )
        self._metadata = ClientMetadata(
            self.clock, environment.topics, config.metadata_max_age_ms * 1000, self.runs_again
        )
        self.member_id = drawn_member_id(environment.seed, self.name, incarnation)
        self.group_member: HeartbeatingMember[Any] = ShareGroupMember(
            config, self.member_id, self._topic_names, self._now_ms
        )
        self.heartbeats = ShareHeartbeats(environment, self)
        self._network_thread = NetworkThread(self, self.heartbeats.rest_from)
        self.pauses = SharePauses(self.clock, self)
        self._seeks_coordinator = False

    # -- as others see it ------------------------------------------------------------------------

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that it is assigned, as it knows."""
        return self.group_member.owned

    @property
    def settled(self) -> bool:
        """Whether it is a member with an assignment, and runs."""
        is_running = self.clock.now_us >= self.pauses.paused_until_us
        return self.group_member.state is MemberState.STABLE and self.connection.passes and is_running

    # -- the application -------------------------------------------------------------------------

    @abstractmethod
    def work_takes_longer(self, duration_us: int, *, also_next: bool) -> None:
        """The application is late by so much; ``also_next``: with the next records, if it has none."""

    @abstractmethod
    def note_polls(self) -> None:
        """Tell the member of the application's last poll()."""

    @abstractmethod
    def nudge(self) -> None:
        """The member may have another assignment."""

    @abstractmethod
    def _gone(self, cause: str) -> None:
        """The process ends."""

    # -- life ------------------------------------------------------------------------------------

    def _join(self) -> None:
        config = self.config
        self.started = True
        age_us = self._environment.phases.metadata_age_us(
            self.name, self.clock.now_us, config.metadata_max_age_ms * 1000
        )
        self._metadata.start(age_us)
        self.group_member.subscribe(frozenset(config.topics))

    def _leave(self) -> None:
        self._wake()
        self.group_member.close()
        self._network_thread.turn()

    def runs_again(self) -> None:
        """The process stood still, or nothing came through, or topics have changed."""
        if self.alive and self.started:
            self._wake()
            self._network_thread.turn()

    def _wake(self) -> None:
        self.heartbeats.wake()
        self.note_polls()

    def _stands_still(self, then: Callable[..., None], *arguments: Any) -> bool:
        """Whether the process stands still; then it goes on with this when it runs again."""
        paused_until_us = self.pauses.paused_until_us
        if self.clock.now_us < paused_until_us:
            self.clock.at(paused_until_us, then, *arguments)
        return self.clock.now_us < paused_until_us

    # -- the network thread ----------------------------------------------------------------------

    @property
    def _now_ms(self) -> int:
        return self.client_clock.ms(self.clock.now_us)

    def run_network_thread_at(self, shown_ms: int) -> None:
        self._network_thread.run_at(shown_ms)

    def carry_out(self) -> bool:
        """Do what the member asks for. Returns whether there was anything."""
        operations = self.group_member.operations()
        for operation in operations:
            self._carry_out(operation)
        return bool(operations)

    def _carry_out(self, operation: GroupOperation) -> None:
        match operation:
            case SendHeartbeat(request, _):
                self.connection.send(
                    request,
                    self.config.request_timeout_ms,
                    lambda response: self.answered(operation, response),
                    periodic=True,
                )
            case FindCoordinator():
                self._find_coordinator()
            case RefreshTopics():
                self.clock.after(self.config.retry_backoff_ms * 1000, self._refresh_topics)
            case ReportError():
                self._gone(FAILED)
            case Left():
                self._gone(CLOSED)

    def answered(self, sent: SendHeartbeat, response: Response | Disconnected) -> None:
        """A heartbeat was answered."""
        if not self.alive or self._stands_still(self.answered, sent, response):
            return
        assert isinstance(response, HeartbeatResponse | Disconnected)
        self._wake()
        self.group_member.answered(sent, response, self._now_ms)
        self._network_thread.turn()

    def _find_coordinator(self) -> None:
        if not self._seeks_coordinator:
            self._seeks_coordinator = True
            self.clock.after(0, self.connection.find_coordinator, self._coordinator_found)

    def _coordinator_found(self) -> None:
        if not self.alive or self._stands_still(self._coordinator_found):
            return
        self._seeks_coordinator = False
        if self.connection.broken:
            self._find_coordinator()
            return
        self._wake()
        self.group_member.coordinator_found()
        self._network_thread.turn()

    def metadata_may_have_changed(self) -> None:
        """Topics changed: the client sees it at its next metadata refresh."""
        if self.alive:
            self._metadata.topics_changed()

    def _refresh_topics(self) -> None:
        self._metadata.refresh()
        self.runs_again()

    def _topic_names(self) -> Mapping[UUID, str]:
        return {topic_id(name): name for name in self._metadata.topics()}
