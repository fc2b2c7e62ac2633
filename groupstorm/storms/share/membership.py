"""The membership of one share consumer in virtual time: its heartbeats, coordinator, metadata and pauses.

Kafka: ShareConsumerImpl's network thread, ShareHeartbeatRequestManager.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ShareGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import GroupOperation, Left, ReportError
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.share_records.ports import TopicPartition
from groupstorm.storms.world.clock import ClientClock, Clock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.consumer_group.network_thread import NetworkThread
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.record_times import drawn_member_id
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
        self._clock.at(until_us, process.network_thread.runs_again)

    def busy(self, duration_us: int) -> None:
        """The application takes so much longer for its records; heartbeats go on."""
        if self._process.alive:
            self._process.work_takes_longer(duration_us, also_next=True)


CLOSED, CRASHED, FAILED = "closed", "crashed", "failed"


class ShareMembership(ABC):
    """A client in a share group, whatever its application does."""

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
            self.clock, environment.topics, config.metadata_max_age_ms * 1000, self._topics_refreshed
        )
        self.member_id = drawn_member_id(environment.seed, self.name, incarnation)
        self.group_member: HeartbeatingMember[Any] = ShareGroupMember(
            config, self.member_id, self._metadata.names_by_id, self.client_clock.ms(self.clock.now_us)
        )
        self.topics_to_tell = False
        self.heartbeats = ShareHeartbeats(environment, self)
        self.network_thread = NetworkThread(self, self.heartbeats.rest_from, self.heartbeats.wake)
        self.pauses = SharePauses(self.clock, self)

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

    def metadata_may_have_changed(self) -> None:
        """Topics changed: the client sees it at its next metadata refresh."""
        if self.alive:
            self._metadata.topics_changed()

    def _topics_refreshed(self) -> None:
        self.network_thread.runs_again()

    def refresh_topics(self) -> None:
        self._metadata.refresh()
        self._topics_refreshed()

    def carry_out(self, operation: GroupOperation) -> None:
        """A share consumer has no callbacks: it can only end."""
        if isinstance(operation, ReportError | Left):
            self._gone(FAILED if isinstance(operation, ReportError) else CLOSED)
