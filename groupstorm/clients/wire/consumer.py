"""One consumer process over TCP: it carries out the operations of a `Membership`.

`groupstorm.storms.world.consumer` does the same in virtual time. Both drive the same membership and emit the
same events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from groupstorm.assignors.registry import get
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.leadership import EncodedAssignments
from groupstorm.clients.membership import Flow, Membership
from groupstorm.clients.operations import (
    Assign,
    AssignmentFailed,
    AwaitPoll,
    Backoff,
    CallbackKind,
    CommitPositions,
    Disconnected,
    FindCoordinator,
    Operation,
    PauseFetching,
    ResumeFetching,
    ReturnRecords,
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.commits import Commits, CommittedOffsets
from groupstorm.clients.wire.coordinator_link import CoordinatorLink, RequestObserver
from groupstorm.clients.wire.event_emitter import EventEmitter, OnEvent
from groupstorm.clients.wire.fetch_pauses import FetchPauses
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.leader import GroupLeader
from groupstorm.clients.wire.offsets import OffsetLookup
from groupstorm.clients.wire.poll_loop import PollLoop, PollThrew, sleep_us
from groupstorm.clients.wire.position_search import PositionSearch
from groupstorm.clients.wire.positions import Positions
from groupstorm.clients.wire.rebalance_callbacks import RebalanceCallbacks
from groupstorm.clients.wire.security import PLAINTEXT, ClientSecurity
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.trace.events import member as events


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class WireConsumer:
    """One incarnation of a consumer process: `run` runs it, `close` or `crash` ends it.

    The caller reports when the application polls (``polling``) and what it has processed
    (``positions.processed``): the consumer does not fetch records. All methods belong to the event loop of
    `run`. ``clock`` returns the microseconds of the events; ``observer`` gets the member's requests and the
    coordinator's responses.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap: Sequence[Endpoint],
        on_event: OnEvent,
        *,
        application: ApplicationBehaviour | None = None,
        clock: Callable[[], int] = monotonic_us,
        observer: RequestObserver | None = None,
        security: ClientSecurity = PLAINTEXT,
    ) -> None:
        self.config = config
        self._application = application or ApplicationBehaviour()
        self._emitter = EventEmitter(clock, on_event)
        self._clock = clock
        assignors = tuple(map(get, config.partition_assignment_strategy))
        self.cluster = ClusterClient(bootstrap, config.client_id, config.request_timeout_ms, security)
        self.membership = Membership(config, assignors, self._topics, self._emit)
        self._watch = TopicWatch(config, self.cluster, self.membership, self._changed)
        self._leader = GroupLeader(self.membership, self._watch, self._application, clock, self._emitter)
        self.positions = Positions(self._application.catch_up)
        self._fetch_pauses = FetchPauses(self.membership, self.positions, self._emit)
        self._running = asyncio.Event()
        self._running.set()
        self._link = CoordinatorLink(
            self.cluster,
            config.group_id,
            config.retry_backoff_ms,
            self._running,
            self._found,
            self._lost,
            observer,
        )
        self._heartbeats = Heartbeats(
            config, self.membership, self._link, clock, self._running, self._spawn, self._changed
        )
        self._commits = Commits(config, self.membership, self._link, self.positions, clock)
        self._offsets = OffsetLookup(
            config,
            self.cluster,
            self._link,
            self.positions,
            self._application.auto_offset_reset,
            self._application.log_end,
            self._coordinator_moved,
            self._application.read_committed,
        )
        self._search = PositionSearch(self._offsets, self.positions, self._spawn, self._positions_found)
        self._callbacks = RebalanceCallbacks(
            self.membership, self.positions, self._application, self._heartbeats.timers, clock, self._emitter
        )
        self._background: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._life: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._threw: Error | None = None
        self.polling = PollLoop(
            self.membership,
            self._watch,
            self._heartbeats,
            self._commits,
            self._application,
            clock,
            self._running,
            self._commit_soon,
        )
        self._closing = asyncio.Event()
        self._crashed = False

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """From the first poll() to the end: a fatal error, `close` or `crash`.

        If cancelled, it closes its sockets and sends nothing. Raises InputError if the broker is too old.
        """
        config = self.config
        self._life = asyncio.current_task()
        self._emit(
            events.MemberStarted(config.group_id, config.client_id, config.group_instance_id, config.topics)
        )
        try:
            async with asyncio.TaskGroup() as self._group:
                self._beating = self._spawn(self._heartbeats.run())
                _ = self._spawn(self._watch.run())
                await self._live()
                for task in self._background:
                    task.cancel()
        except asyncio.CancelledError:
            if not self._crashed or self._life is None:
                raise
            self._life.uncancel()
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None  # the exception that ended one task
        finally:
            await self._link.close()
            self.cluster.close()

    def close(self) -> None:
        """The application calls close(): `run` returns when the consumer is closed."""
        self._closing.set()

    def crash(self) -> None:
        """SIGKILL: the consumer sends and receives nothing more."""
        if self._crashed or self._life is None or self._life.done():
            return
        membership, config = self.membership, self.config
        offsets = self.positions.offsets_of(membership.owned)
        self._emit(
            events.MemberCrashed(
                config.group_id,
                config.client_id,
                membership.generation.member_id,
                membership.generation.id,
                tuple(map(str, membership.owned)),
                offsets.positions,
                offsets.committed,
            )
        )
        self._crashed = True
        self._emitter.end()
        self._link.drop()
        self.cluster.close()
        self._life.cancel()

    @property
    def failure(self) -> str | None:
        """The fatal error, by Kafka's name, or the exception that poll() throws; None while it runs."""
        return self.membership.failure or (None if self._threw is None else self._threw.name)

    @property
    def closing(self) -> bool:
        """close() has been called, or a fatal error closes it."""
        return self._closing.is_set()

    @property
    def without_offset(self) -> tuple[TopicPartition, ...]:
        """The partitions without committed offset, if auto.offset.reset is none."""
        return self._offsets.without_offset

    async def commit(self, offsets: CommittedOffsets) -> Error | Disconnected:
        """Commit these, as commitSync() does. Returns the first error of the response."""
        error = await self._link.find()
        if error is not Error.NONE:
            return error
        response = await self._commits.commit(offsets)
        self._changed()
        return response

    async def ask_coordinator(self, request: Request) -> Response | Disconnected | Error:
        """Send a request that is not the membership's; `Error` if the group has no coordinator."""
        error = await self._link.find()
        if error is not Error.NONE:
            return error
        return await self._link.ask(request, self.config.request_timeout_ms)

    def refresh_topics(self) -> None:
        """The topic metadata has turned out to be old: fetch it anew."""
        self._watch.refresh_soon()

    def pause(self) -> None:
        """SIGSTOP: the consumer sends and receives nothing until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    def cut_off(self) -> None:
        """The network to the brokers is down until `reconnect`; the process goes on."""
        self.cluster.reachable = False
        self.cluster.close()
        self.membership.coordinator_known = False
        self._changed()

    def reconnect(self) -> None:
        self.cluster.reachable = True

    async def _live(self) -> None:
        polling = self._spawn(self._poll())
        closing = self._spawn(self._until_closing())
        await asyncio.wait({polling, closing}, return_when=asyncio.FIRST_COMPLETED)
        polls = not polling.done()
        polling.cancel()
        await asyncio.wait({polling})
        if self._threw is not None:
            config, generation = self.config, self.membership.generation
            self._emit(
                events.MemberFailed(config.group_id, config.client_id, generation.member_id, self._threw.name)
            )
        if polls or self._threw is not None:
            self._closing.set()
            await self._leave()

    async def _leave(self) -> None:
        flow = self.membership.close()
        try:
            async with asyncio.timeout(self._application.close_timeout_ms / 1000):
                await self._drive(flow)
        except TimeoutError:
            flow.close()
            config, generation = self.config, self.membership.generation
            self._emit(events.MemberClosed(config.group_id, config.client_id, generation.member_id, "silent"))

    async def _until_closing(self) -> None:
        await self._closing.wait()

    async def _poll(self) -> None:
        await self._watch.known.wait()
        flow = self.membership.run()
        try:
            await self._drive(flow)
        except PollThrew as threw:
            self._threw = threw.error
        finally:
            flow.close()

    # -- the membership's operations -------------------------------------------------------------

    async def _drive(self, flow: Flow) -> None:
        """Carry out the membership's operations until its flow ends."""
        result: Any = None
        while True:
            try:
                operation = flow.send(result)
            except StopIteration:
                self._changed()
                return
            self._changed()
            result = await _CARRIES_OUT[type(operation)](self, operation)
            await self._running.wait()

    async def _send(self, operation: Send) -> Response | Disconnected:
        return await self._link.ask(operation.request, operation.timeout_ms)

    async def _find_coordinator(self, _: FindCoordinator) -> None:
        error = await self._link.find()
        if error is not Error.NONE:
            raise PollThrew(error)

    async def _back_off(self, operation: Backoff) -> None:
        await asyncio.sleep(operation.delay_ms / 1000)

    async def _stop_processing(self, operation: StopProcessing) -> None:
        await self._application.at_poll()
        self.positions.stop(operation.partitions)

    async def _pause_fetching(self, operation: PauseFetching) -> None:
        self._fetch_pauses.pause(operation.partitions)

    async def _resume_fetching(self, operation: ResumeFetching) -> None:
        self._fetch_pauses.resume(operation.partitions)

    async def _return_records(self, _: ReturnRecords) -> None:
        await sleep_us(self._application.poll_wait_us())

    async def _commit_positions(self, _: CommitPositions) -> Error | Disconnected:
        return await self._commits.commit()

    async def _run_callback(self, operation: RunCallback) -> None:
        if operation.kind is CallbackKind.ASSIGNED:
            self._search.stop()
            self._commits.reset()
        elif self._closing.is_set() and self._beating is not None:
            self._beating.cancel()  # close() ends the heartbeat thread, then runs the listener
        await self._callbacks.run(operation)

    async def _await_poll(self, _: AwaitPoll) -> None:
        self._search.start()
        await self.polling.until_due()

    async def _assign(self, operation: Assign) -> EncodedAssignments | AssignmentFailed:
        return await self._leader.assign(operation)

    # -- parts -----------------------------------------------------------------------------------

    def _topics(self) -> Mapping[str, int]:
        return self.cluster.topics

    def _positions_found(self, error: Error) -> None:
        if error is not Error.NONE:
            self.polling.failed = error
        self._callbacks.positions_found()
        self._changed()

    def _commit_soon(self) -> None:
        _ = self._spawn(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        await self._commits.commit_in_background()
        self._changed()

    def _changed(self) -> None:
        """A response has arrived: every part looks at the membership again."""
        if not self.membership.coordinator_known:
            self._link.drop()
        self._heartbeats.follow()
        self.polling.wake()
        self._application.on_change()

    def _found(self) -> None:
        self.membership.coordinator_known = True
        self._heartbeats.timers.coordinator_found(self._clock())

    def _lost(self) -> None:
        self.membership.coordinator_known = False
        self._heartbeats.follow()

    def _coordinator_moved(self) -> None:
        self.membership.coordinator_known = False
        self._changed()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None
        task = self._group.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _emit(self, event: events.Event) -> None:
        self._emitter.emit(event)


_CARRIES_OUT: Mapping[type[Operation], Callable[[WireConsumer, Any], Awaitable[Any]]] = {
    Send: WireConsumer._send,
    FindCoordinator: WireConsumer._find_coordinator,
    AwaitPoll: WireConsumer._await_poll,
    Backoff: WireConsumer._back_off,
    RunCallback: WireConsumer._run_callback,
    StopProcessing: WireConsumer._stop_processing,
    PauseFetching: WireConsumer._pause_fetching,
    ResumeFetching: WireConsumer._resume_fetching,
    ReturnRecords: WireConsumer._return_records,
    CommitPositions: WireConsumer._commit_positions,
    Assign: WireConsumer._assign,
}
