"""One share consumer in virtual time: its membership, its fetches, and the application's poll loop.

Kafka: KafkaShareConsumer, ShareConsumeRequestManager, ShareHeartbeatRequestManager. A poll() that finds no
records sends a ShareFetch, with the acknowledgements of the records of the last poll(); nothing is fetched
ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.member import ShareGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import GroupOperation, Left, ReportError
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.history.causes import OF_A_RECORD
from groupstorm.share_records.messages import Response, ShareFetchResponse
from groupstorm.share_records.ports import TopicPartition
from groupstorm.storms.scenario.setting_names import RECORD_LIMIT
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.share.leader import ShareLeader
from groupstorm.storms.share.work import (
    Acknowledgements,
    BatchOfWork,
    FetchSettings,
    Records,
    ShareLink,
    ShareWork,
)
from groupstorm.storms.world.clock import ClientClock, Clock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.consumer_group.network_thread import NetworkThread
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.record_times import drawn_member_id
from groupstorm.storms.world.topics import ClientMetadata
from groupstorm.trace.events import share as events
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.schema import Source

#: The time for which close() waits.
_CLOSE_US: Final = 30_000_000


CLOSED, CRASHED, FAILED = "closed", "crashed", "failed"


class ShareHeartbeats(QuietHeartbeats):
    """The heartbeats of one process."""

    API = "ShareGroupHeartbeat"
    RESPONSE = ShareGroupHeartbeatResponse


class SharePauses:
    """The time until which a process stands still."""

    def __init__(self, clock: Clock, process: ShareConsumer) -> None:
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


class ShareConsumer:
    """One incarnation of a process with a share consumer. ``settings`` are its own."""

    def __init__(
        self,
        environment: Environment,
        leader: ShareLeader,
        index: int,
        incarnation: int,
        config: ConsumerConfig,
        settings: Settings,
        on_gone: Callable[[ShareConsumer], None],
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
        self._leader = leader
        self._on_gone = on_gone
        self.on_exit: Callable[[], None] | None = None
        self._max_records = settings.integer("max.poll.records")
        self._poll_interval_us = settings.distribution("poll_interval_ms").largest_us
        self._link = ShareLink(
            environment,
            leader,
            self,
            self.member_id,
            incarnation,
            FetchSettings(
                self._max_records,
                settings.integer("fetch.max.wait.ms"),
                settings.choice("share.acquire.mode") == RECORD_LIMIT,
            ),
        )
        self._application = ShareWork(environment, settings, index, self.name, incarnation)
        #: The application is inside poll(), and no request is under way: it has no partitions.
        self._is_idle = False
        #: The records of the last fetch that no poll() has returned yet.
        self._buffer: list[Records] = []
        #: The records that the last poll() has returned.
        self._batch: BatchOfWork | None = None
        self._acknowledgements: Acknowledgements = {}
        self._polled_us = self._told_poll_us = -1

    def __repr__(self) -> str:
        state = self.group_member.state.name if self.alive else "gone"
        return f"<ShareConsumer {self.name} {state} assigned={len(self.partitions)}>"

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

    @property
    def connection_id(self) -> str:
        return self._link.connection_id

    @property
    def work(self) -> ShareConsumer:
        """A share consumer owns nothing alone; its partitions are those that it fetches from."""
        return self

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """subscribe(), and the first poll()."""
        self._emit(events.ShareConsumerStarted(self.config.group_id, self.name, self.config.topics))
        config = self.config
        self.started = True
        age_us = self._environment.phases.metadata_age_us(
            self.name, self.clock.now_us, config.metadata_max_age_ms * 1000
        )
        self._metadata.start(age_us)
        self.group_member.subscribe(frozenset(config.topics))
        self.network_thread.find_coordinator()
        self._poll()

    def stop(self) -> None:
        """close(): acknowledge what is acknowledged, end the share session, leave the group."""
        if not self.alive or not self.started or self.closing:
            return
        if self.network_thread.stands_still(self.stop):
            return
        self.closing = True
        batch, self._batch = self._batch, None
        if batch is not None and self._application.acknowledges_each:
            self._acknowledge(batch.acknowledged(each=True, by_us=self.clock.now_us))
        self.clock.after(_CLOSE_US, self._close_timed_out)
        if self._link.is_free:  # else close() waits for the answer
            self._end_session()

    def _end_session(self) -> None:
        if self._link.has_session and self.clock.now_us >= self._link.broken_until_us:
            acks, self._acknowledgements = self._acknowledgements, {}
            self._link.acknowledge(acks, self._session_ended, is_final=True)
        else:
            self._session_ended()

    def _session_ended(self, _: Response | None = None) -> None:
        if self.alive:
            self._buffer.clear()
            self.network_thread.wake()
            self.network_thread.leave()

    def _close_timed_out(self) -> None:
        if self.alive:
            self.network_thread.end()
            self._gone(CLOSED)

    def crash(self) -> None:
        """SIGKILL or node loss: the leader notices that the connection is gone, the coordinator does not."""
        if self.alive:
            self._gone(CRASHED)

    def _gone(self, cause: str) -> None:
        self.heartbeats.wake()
        self.alive = False
        if self.started:
            self._leader.disconnect(self)
            self._emit(events.ShareConsumerGone(self.config.group_id, self.name, cause))
        self._on_gone(self)
        if self.on_exit is not None:
            self.on_exit()

    def disconnect(self, duration_us: int) -> None:
        """Cut the process off from all brokers; the application works on."""
        if not self.alive:
            return
        self.heartbeats.wake()
        waited = self._link.break_for(duration_us)
        self.connection.break_for(duration_us)
        self.network_thread.lose_coordinator()
        if waited:
            self.clock.at(self._link.broken_until_us, self._go_on_after_loss)

    def _go_on_after_loss(self) -> None:
        if self.alive and self._link.is_free:
            self._answered()

    def work_takes_longer(self, duration_us: int, *, also_next: bool) -> None:
        """The application is late by so much; ``also_next``: with the next records, if it has none."""
        if self._batch is not None and self.clock.now_us < self._batch.end_us:
            self._batch.moved_us += duration_us
        elif also_next:
            self._application.delay_us += duration_us

    # -- the application -------------------------------------------------------------------------

    def _poll(self) -> None:
        """poll(): the records of the last one count as acknowledged."""
        if not self.alive or self.closing or self.network_thread.stands_still(self._poll):
            return
        batch, self._batch = self._batch, None
        if batch is not None:
            self._acknowledge(batch.acknowledged(each=self._application.acknowledges_each))
        self._polled_us = self.clock.now_us
        if self.group_member.state in (MemberState.UNSUBSCRIBED, MemberState.STALE):
            self.note_polls()
            self.network_thread.turn()
        if self._buffer:
            if self._acknowledgements and self._link.is_free and self._link.has_session:
                acks, self._acknowledgements = self._acknowledgements, {}
                self._link.acknowledge(acks, lambda _: self._answered())
            self._begin_work()
        elif self._link.is_free:
            self._fetch()

    def _acknowledge(self, acks: Acknowledgements) -> None:
        for partition, batches in acks.items():
            self._acknowledgements.setdefault(partition, []).extend(batches)

    def _begin_work(self) -> None:
        now_us = self.clock.now_us
        self._batch = batch = self._application.begin(now_us, self._buffer, self._max_records)
        self.clock.at(batch.end_us, self._worked, batch)
        self._watch_poll()

    def _watch_poll(self) -> None:
        """Find out in time that the next poll() comes later than max.poll.interval.ms allows."""
        deadline_us = self._polled_us + self.config.max_poll_interval_ms * 1000
        if self._batch is not None and self._batch.end_us > deadline_us >= self.clock.now_us:
            self.clock.at(deadline_us + 1000, self._polls_late, self._polled_us)

    def _polls_late(self, polled_us: int) -> None:
        if self.alive and not self.closing and polled_us == self._polled_us:
            self.network_thread.runs_again()

    def _worked(self, batch: BatchOfWork) -> None:
        now_us = self.clock.now_us
        if batch is not self._batch or not self.alive:
            return
        if now_us < batch.end_us:
            self.clock.at(batch.end_us, self._worked, batch)
            self._watch_poll()
        elif batch.dies:
            step = StepTaken(self.config.group_id, self.name, "crash", OF_A_RECORD)
            self._environment.trace.emit(Source.WORLD, step)
            self._gone(CRASHED)
        elif not self._buffer and batch.count < self._max_records:
            next_us = max(now_us, self._polled_us + self._poll_interval_us)
            self.clock.at(next_us, self._poll_next, batch)
        else:
            self._poll()

    def _poll_next(self, batch: BatchOfWork) -> None:
        if batch is self._batch:
            self._poll()

    # -- fetches ---------------------------------------------------------------------------------

    def _fetch(self) -> None:
        """Fetch, with the acknowledgements; without partitions wait for an assignment."""
        self._is_idle = False
        now_us, link = self.clock.now_us, self._link
        if now_us < link.broken_until_us:
            self.clock.at(link.broken_until_us, self._go_on_after_loss)
            return
        acks, self._acknowledgements = self._acknowledgements, {}
        wanted = self.partitions
        if wanted:
            link.fetch(wanted, acks, self._fetched)
        elif acks and link.has_session:
            link.acknowledge(acks, lambda _: self._answered())
        else:
            self._is_idle = True

    def _fetched(self, response: Response) -> None:
        if not self.alive or self.network_thread.stands_still(self._fetched, response):
            return
        assert isinstance(response, ShareFetchResponse)
        for partition, found in response.partitions.items():
            for one in found.acquired:
                self._buffer.append(Records(partition, one.first_offset, one.last_offset))
        if response.error is Error.NONE:
            self._answered()
        else:
            self.clock.after(self.config.retry_backoff_ms * 1000, self._answered)

    def _answered(self) -> None:
        """A request is done: go on with what waited for it."""
        if not self.alive or self.network_thread.stands_still(self._answered):
            return
        if self.closing:
            self._end_session()
        elif self._batch is None:
            self._poll()

    # -- the membership --------------------------------------------------------------------------

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

    def note_polls(self) -> None:
        """Tell the member of the application's last poll(); without records the application is inside one."""
        if self._batch is None and not self.closing:
            self._polled_us = self.clock.now_us
        if self._polled_us > self._told_poll_us:
            self._told_poll_us = self._polled_us
            self.group_member.poll(self.client_clock.ms(self._polled_us))

    def nudge(self) -> None:
        """The member may have another assignment."""
        if self._is_idle and self.partitions and self._link.is_free and not self.closing:
            self._fetch()

    def _emit(self, event: events.Event) -> None:
        self._environment.trace.emit(Source.MEMBER, event)
