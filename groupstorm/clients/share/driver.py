"""A share consumer's network side: heartbeats to the coordinator, share requests to leaders.

It carries out what `ShareGroupMember` and `ShareSessions` ask for, as Kafka's ConsumerNetworkThread does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.consumer.errors import ConsumerError, ConsumerFailed, FetchRefused
from groupstorm.clients.consumer.fetcher import LEADER_MOVED
from groupstorm.clients.consumer_group.member import ShareGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import (
    Disconnected,
    FindCoordinator,
    Left,
    RefreshTopics,
    ReportError,
    RunCallback,
    SendHeartbeat,
)
from groupstorm.clients.share.records import Acknowledgements, HeldRecords, SharePartition, Source
from groupstorm.clients.share.sessions import (
    ShareRequest,
    ShareSessions,
    api_of,
    fetched_partitions,
    lock_timeout_ms,
    share_answer,
    share_request,
)
from groupstorm.clients.share.settings import ShareSettings
from groupstorm.clients.wire.cluster import ClusterClient, LeaderConnections, TopicWatch
from groupstorm.clients.wire.connection import ConnectionLost
from groupstorm.clients.wire.consumer import monotonic_us
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.clients.wire.group_driver import new_member_id
from groupstorm.clients.wire.waiting import ChangeNotifier, WakeEvent
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeatResponse
from groupstorm.problems import InputError

#: ConsumerNetworkThread looks at least that often (MAX_POLL_TIMEOUT_MS).
_STEP_MS_MAX = 5_000
_REMEDY = "share groups need Kafka 4.1 or later, with the feature share.version"
#: Errors of one partition after which its leader is looked up.
_MOVED = LEADER_MOVED | {Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_SERVER_ERROR}


class ShareDriver:
    """``changes`` wakes tasks that wait for records or answers. ``on_problem`` gets an error for the
    application to raise, ``on_done`` acknowledgements that the brokers have answered.
    """

    #: The broker assigns the partitions.
    is_leader = False

    def __init__(
        self,
        settings: ShareSettings,
        held: HeldRecords,
        changes: ChangeNotifier,
        on_problem: Callable[[ConsumerError], None],
        on_done: Callable[[Collection[Acknowledgements]], None],
    ) -> None:
        self.config = settings.config
        #: The acquisition lock's time-out, once a broker has told it.
        self.lock_timeout_ms: int | None = None
        self._settings = settings
        self._held = held
        self._changes, self._on_problem, self._on_done = changes, on_problem, on_done
        self._sessions = ShareSessions(self.config.retry_backoff_ms, settings.fetch.strict)
        self._cluster = ClusterClient(
            settings.bootstrap, self.config.client_id, self.config.request_timeout_ms, settings.security
        )
        self._member = ShareGroupMember(
            self.config, new_member_id(), lambda: self._cluster.topic_names, self._now_ms()
        )
        always = asyncio.Event()
        always.set()
        group, backoff_ms = self.config.group_id, self.config.retry_backoff_ms
        self._link = CoordinatorLink(self._cluster, group, backoff_ms, always)
        self._link.on_lost = self._coordinator_lost
        self._leaders = LeaderConnections(self._cluster, self._leader_lost)
        self._watch = TopicWatch(self._cluster, self, self.advance)
        self._wake = WakeEvent(monotonic_us)
        self._lookup: asyncio.Task[None] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._has_left = False

    # -- for `TopicWatch` ------------------------------------------------------------------------

    @property
    def assigned_topic_ids(self) -> Collection[UUID]:
        return self._member.assigned_topic_ids

    def metadata_refreshed(self) -> None:
        """`TopicWatch` calls `advance`, too."""

    # -- life ------------------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        return self._member.member_id

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return self._member.owned

    async def run(self) -> None:
        """Run until cancelled. Raises InputError if the broker is too old or refuses the credentials."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    await self._run_network()
                finally:
                    self._group = None  # what ends now starts nothing more
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None  # the exception that ended one task
        finally:
            await self._link.close()
            self._leaders.abort()
            self._cluster.close()

    async def close(self) -> None:
        """Close the sessions, which releases the records that are not acknowledged, and leave the group."""
        self._sessions.closing = True
        self.advance()
        while not self._sessions.is_closed:
            await self._changes.wait()
        await self.leave()

    async def leave(self) -> None:
        """Leave the group. The sessions stay: records that the application has can be acknowledged."""
        self._has_left = False
        self.config = replace(self.config, topics=())
        self._member.unsubscribe()
        self.advance()
        while not self._has_left:
            await self._changes.wait()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Read these topics: join the group, or tell it with the next heartbeat."""
        self.config = replace(self.config, topics=topics)
        self._watch.refresh_soon()
        self._member.subscribe(frozenset(topics))

    def poll(self) -> int:
        """The application is inside poll(). Returns the time in which it has to come again."""
        self._member.poll(self._now_ms())
        self.advance()
        return max(self._member.poll_wait_ms(self._now_ms()), self.config.retry_backoff_ms)

    def want_records(self) -> None:
        """Ask for records with the next requests."""
        self._sessions.wants_records = True

    def acknowledge(self, acknowledgements: Iterable[Acknowledgements], timeout_ms: int) -> None:
        """Send these with the next requests, and again for ``timeout_ms`` after errors that pass."""
        for one in acknowledgements:
            one.deadline_ms = self._now_ms() + timeout_ms
            self._sessions.acknowledge([one])

    # -- the network thread ----------------------------------------------------------------------

    async def _run_network(self) -> None:
        _ = self._spawn(self._watch.run())
        await self._watch.known.wait()
        self._look_up()
        while True:
            step_us = self._advance()
            await self._wake.wait(step_us)

    def advance(self) -> None:
        """Something has changed: do at once what is due."""
        if self._group is not None and self._watch.known.is_set():
            self._advance()
            self._wake.wake()

    def _advance(self) -> int:
        """Let member and sessions do what is due. Returns when to look again, in microseconds."""
        now_ms = self._now_ms()
        # 0: an answer is missing; it will wake this task
        wait_ms = self._member.step(now_ms) or self.config.retry_backoff_ms
        self._carry_out()
        self._sessions.read(self._led())
        for request in self._sessions.requests(now_ms):
            _ = self._spawn(self._share(request))
        self._tell_done()
        backoff_ms = self._sessions.next_ms(now_ms)
        wait_ms = min(wait_ms, _STEP_MS_MAX, _STEP_MS_MAX if backoff_ms is None else backoff_ms)
        return monotonic_us() + wait_ms * 1000

    def _carry_out(self) -> None:
        while operations := self._member.operations():
            for operation in operations:
                match operation:
                    case SendHeartbeat():
                        _ = self._spawn(self._beat(operation))
                    case FindCoordinator():
                        self._link.drop()
                        self._look_up()
                    case RefreshTopics():
                        self._watch.refresh_soon()
                    case RunCallback():  # there is no listener
                        _ = self._member.callback_begins()
                        self._member.callback_ended()
                    case ReportError(error) if self._member.state is MemberState.FATAL:
                        _ = self._spawn(self._fail(error))
                    case ReportError(error):
                        self._on_problem(ConsumerFailed(error))
                    case Left():
                        self._has_left = True
                        self._changes.notify()
                    case _:
                        """`StopProcessing`: records of a partition that goes stay locked for this member."""

    async def _beat(self, operation: SendHeartbeat) -> None:
        try:
            response = await self._link.ask(operation.request, self.config.request_timeout_ms)
        except InputError as problem:
            raise InputError(f"{problem}; {_REMEDY}") from None
        assert isinstance(response, ShareGroupHeartbeatResponse | Disconnected)
        if not isinstance(response, Disconnected) and response.error is Error.UNSUPPORTED_VERSION:
            raise InputError(_REMEDY)
        self._member.answered(operation, response, self._now_ms())
        self.advance()

    def _look_up(self) -> None:
        if self._lookup is None:
            self._lookup = self._spawn(self._find_coordinator())

    async def _find_coordinator(self) -> None:
        error = await self._link.find()
        self._lookup = None
        if error is Error.NONE:
            self._member.coordinator_found()
            self.advance()
        else:
            await self._fail(error.name)

    async def _fail(self, error: str) -> None:
        """End `run` with it."""
        raise ConsumerFailed(error)

    def _coordinator_lost(self) -> None:
        self._member.coordinator_known = False
        if self._group is not None:
            self._look_up()

    # -- share requests --------------------------------------------------------------------------

    def _led(self) -> dict[int, frozenset[SharePartition]]:
        """The member's partitions by their leader."""
        led: dict[int, set[SharePartition]] = {}
        ids = {name: topic_id for topic_id, name in self._cluster.topic_names.items()}
        for partition in self._member.owned:
            leader = self._cluster.leader(partition)
            if leader is None or partition.topic not in ids:
                self._watch.refresh_soon()
            else:
                found = SharePartition(ids[partition.topic], partition.partition)
                led.setdefault(leader.node_id, set()).add(found)
        return {node_id: frozenset(those) for node_id, those in led.items()}

    async def _share(self, request: ShareRequest) -> None:
        fetch, config = self._settings.fetch, self.config
        api = api_of(request, fetch.strict)
        build = share_request(request, config.group_id, self._member.member_id, fetch)
        timeout_ms = config.request_timeout_ms + fetch.max_wait_ms
        try:
            connection = await self._leaders.to(request.node_id)
            answer = await connection.ask(api, api.highest, build, timeout_ms)
        except ConnectionLost:
            self._watch.refresh_soon()
            self._sessions.answered(request, Disconnected(), self._now_ms())
        else:
            self.lock_timeout_ms = lock_timeout_ms(answer) or self.lock_timeout_ms
            self._sessions.answered(request, share_answer(request, answer), self._now_ms())
            if request.fetches:
                self._take(request.node_id, answer)
        self.advance()
        self._changes.notify()

    def _take(self, node_id: int, answer: Any) -> None:
        names = self._cluster.topic_names
        for partition, error, acquired, data in fetched_partitions(answer):
            if error in _MOVED or partition.topic_id not in names:
                self._watch.refresh_soon()
                continue
            name = TopicPartition(names[partition.topic_id], partition.partition)
            if error is not Error.NONE:
                self._on_problem(FetchRefused(name, error.name))
            if acquired:
                self._sessions.wants_records = False
                self._held.fetched(Source(node_id, partition, name), acquired, data)

    def _leader_lost(self, node_id: int) -> None:
        self._sessions.lost(node_id)
        self.advance()

    def _tell_done(self) -> None:
        done = self._sessions.done()
        if done:
            self._held.answered(done)
            self._on_done(done)
            self._changes.notify()

    def _now_ms(self) -> int:
        return monotonic_us() // 1000

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(work)
