"""One share consumer in virtual time: its membership, its fetches, and the application's poll loop.

Kafka: KafkaShareConsumer, ShareConsumeRequestManager. A poll() that finds no records sends a ShareFetch, with
the acknowledgements of the records of the last poll(); nothing is fetched ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.heartbeating import HeartbeatingMember
from groupstorm.clients.consumer_group.share_member import ShareGroupMember
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
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Response as GroupResponse
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.share_records.messages import Response, ShareFetchResponse
from groupstorm.share_records.ports import TopicPartition
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.share_settings import ACQUIRE_MODE, FETCH_WAIT, RECORD_LIMIT
from groupstorm.storms.share.leader import ShareLeader
from groupstorm.storms.share.link import FetchSettings, ShareLink
from groupstorm.storms.share.pauses import SharePauses, ShareRequests
from groupstorm.storms.share.work import Acknowledgements, BatchOfWork, Records, ShareWork
from groupstorm.storms.world.broker import topic_id
from groupstorm.storms.world.client_timers import ClientTimers
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.consumer_group.client_clock import ClientClock
from groupstorm.storms.world.consumer_group.member_ids import drawn_member_id
from groupstorm.storms.world.consumer_group.network_thread import NetworkThread
from groupstorm.storms.world.consumer_group.quiet_heartbeats import QuietHeartbeats
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.metadata import ClientMetadata
from groupstorm.trace.events import share as events
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.schema import Source

#: How long close() waits.
_CLOSE_US: Final = 30_000_000
CLOSED, CRASHED, FAILED = "closed", "crashed", "failed"


class ShareConsumer:
    """One incarnation of a process with a share consumer. ``settings`` are its own."""

    #: Its subscription does not change.
    topics_to_tell = False

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
        self._leader = leader
        self._on_gone = on_gone
        self.clock = environment.clock
        self.index = index
        self.name = config.client_id
        self.config = config
        self.alive = True
        self.started = False
        #: The application has called close().
        self.closing = False
        self.on_exit: Callable[[], None] | None = None
        self.client_clock = ClientClock(0)
        self._max_records = settings.integer("max.poll.records")
        self._poll_interval_us = settings.distribution("poll_interval_ms").largest_us
        self.connection = VirtualConnection(
            environment.network, index, self.name, incarnation, lambda *_: None, ClientTimers(0)
        )
        self._metadata = ClientMetadata(
            self.clock, environment.topics, config.metadata_max_age_ms * 1000, self._topics_refreshed
        )
        member_id = drawn_member_id(environment.seed, self.name, incarnation)
        self.group_member: HeartbeatingMember[Any] = ShareGroupMember(
            config, member_id, self._topic_names, self._now_ms
        )
        heartbeats = QuietHeartbeats(self, ShareGroupHeartbeatResponse)
        self.periodic_requests = ShareRequests(environment, member_id, heartbeats)
        self._network_thread = NetworkThread(environment, self, heartbeats)
        self.pauses = SharePauses(self.clock, self)
        self._link = ShareLink(
            environment,
            leader,
            self,
            member_id,
            incarnation,
            FetchSettings(
                self._max_records,
                settings.integer(FETCH_WAIT),
                settings.choice(ACQUIRE_MODE) == RECORD_LIMIT,
            ),
        )
        self._application = ShareWork(environment, settings, index, self.name, incarnation)
        self._seeks_coordinator = False
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
    def connection_id(self) -> str:
        return self._link.connection_id

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that it is assigned, as it knows."""
        return self.group_member.owned

    @property
    def work(self) -> ShareConsumer:
        """A share consumer owns nothing alone; its partitions are those that it fetches from."""
        return self

    @property
    def settled(self) -> bool:
        """Whether it is a member with an assignment, and runs."""
        is_running = self.clock.now_us >= self.pauses.paused_until_us
        return self.group_member.state is MemberState.STABLE and self.connection.passes and is_running

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """subscribe(), and the first poll()."""
        config = self.config
        self.started = True
        age_us = self._environment.phases.metadata_age_us(
            self.name, self.clock.now_us, config.metadata_max_age_ms * 1000
        )
        self._metadata.start(age_us)
        self._emit(events.ShareConsumerStarted(config.group_id, self.name, config.topics))
        self.group_member.subscribe(frozenset(config.topics))
        self._find_coordinator()
        self._poll()

    def stop(self) -> None:
        """close(): acknowledge what is acknowledged, end the share session, leave the group."""
        if not self.alive or not self.started or self.closing:
            return
        if self._stands_still(self.stop):
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
            self._leave()

    def _session_ended(self, _: Response) -> None:
        if self.alive:
            self._leave()

    def _leave(self) -> None:
        self._buffer.clear()
        self.periodic_requests.wake_heartbeats()
        self.note_polls()
        self.group_member.close()
        self._network_thread.turn()

    def _close_timed_out(self) -> None:
        if self.alive:
            self.group_member.end()
            self.carry_out()
            self._gone(CLOSED)

    def crash(self) -> None:
        """SIGKILL or node loss: the leader notices that the connection is gone, the coordinator does not."""
        if self.alive:
            self._gone(CRASHED)

    def _gone(self, cause: str) -> None:
        self.periodic_requests.wake_heartbeats()
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
        self.periodic_requests.wake_heartbeats()
        waited = self._link.break_for(duration_us)
        self.connection.break_for(duration_us)
        self.group_member.coordinator_known = False
        self._find_coordinator()
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

    def _stands_still(self, then: Callable[..., None], *arguments: Any) -> bool:
        """Whether the process stands still; then it goes on with this when it runs again."""
        paused_until_us = self.pauses.paused_until_us
        if self.clock.now_us < paused_until_us:
            self.clock.at(paused_until_us, then, *arguments)
        return self.clock.now_us < paused_until_us

    # -- the application -------------------------------------------------------------------------

    def _poll(self) -> None:
        """poll(): the records of the last one count as acknowledged."""
        if not self.alive or self.closing or self._stands_still(self._poll):
            return
        batch, self._batch = self._batch, None
        if batch is not None:
            self._acknowledge(batch.acknowledged(each=self._application.acknowledges_each))
        self._polled_us = self.clock.now_us
        if self.group_member.state in (MemberState.UNSUBSCRIBED, MemberState.STALE):
            self.note_polls()
            self._network_thread.turn()
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
            self.runs_again()

    def _worked(self, batch: BatchOfWork) -> None:
        now_us = self.clock.now_us
        if batch is not self._batch or not self.alive:
            return
        if now_us < batch.end_us:
            self.clock.at(batch.end_us, self._worked, batch)
            self._watch_poll()
        elif batch.dies:
            self._emit_step("of a record")
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
        if not self.alive or self._stands_still(self._fetched, response):
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
        if not self.alive or self._stands_still(self._answered):
            return
        if self.closing:
            self._end_session()
        elif self._batch is None:
            self._poll()

    # -- the network thread ----------------------------------------------------------------------

    @property
    def _now_ms(self) -> int:
        return self.client_clock.ms(self.clock.now_us)

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

    def run_network_thread_at(self, shown_ms: int) -> None:
        self._network_thread.run_at(shown_ms)

    def runs_again(self) -> None:
        """The process stood still, or nothing came through."""
        if self.alive and self.started:
            self.periodic_requests.wake_heartbeats()
            self.note_polls()
            self._network_thread.turn()

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

    def answered(self, sent: SendHeartbeat, response: GroupResponse | Disconnected) -> None:
        """A heartbeat was answered."""
        if not self.alive or self._stands_still(self.answered, sent, response):
            return
        assert isinstance(response, HeartbeatResponse | Disconnected)
        self.periodic_requests.wake_heartbeats()
        self.note_polls()
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
        self.periodic_requests.wake_heartbeats()
        self.note_polls()
        self.group_member.coordinator_found()
        self._network_thread.turn()

    def metadata_may_have_changed(self) -> None:
        """Topics changed: the client sees it at its next metadata refresh."""
        if self.alive:
            self._metadata.topics_changed()

    def _refresh_topics(self) -> None:
        self._metadata.refresh()
        self._topics_refreshed()

    def _topics_refreshed(self) -> None:
        self.runs_again()

    def _topic_names(self) -> Mapping[UUID, str]:
        return {topic_id(name): name for name in self._metadata.topics()}

    def _emit(self, event: events.Event) -> None:
        self._environment.trace.emit(Source.MEMBER, event)

    def _emit_step(self, detail: str) -> None:
        step = StepTaken(self.config.group_id, self.name, "crash", detail)
        self._environment.trace.emit(Source.WORLD, step)
