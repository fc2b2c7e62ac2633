"""One consumer process over TCP: it carries out what a `Membership` asks for.

The virtual one is `groupstorm.storms.consumer`: both drive the same membership and tell the same events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.registry import get
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients import events
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.leadership import Plan, lead
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
    RunCallback,
    Send,
    StopProcessing,
)
from groupstorm.clients.wire.application import Application
from groupstorm.clients.wire.cluster import Cluster
from groupstorm.clients.wire.commits import Commits, CommittedOffsets
from groupstorm.clients.wire.coordinator_link import CoordinatorLink, Exchanges
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.offsets import OffsetLookup
from groupstorm.clients.wire.poll_loop import PollLoop, PollThrew, sleep_us
from groupstorm.clients.wire.positions import Positions
from groupstorm.clients.wire.rebalance_listener import RebalanceListener
from groupstorm.clients.wire.security import PLAINTEXT, Security
from groupstorm.clients.wire.telling import OnEvent, Telling
from groupstorm.clients.wire.topic_watch import TopicWatch
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import Request, Response
from groupstorm.coordinator.server.config import Endpoint


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


class WireConsumer:
    """One incarnation of a consumer process: `run` lives its life, `close` or `crash` ends it.

    ``polling`` is told when the application polls and when it works. Records are not fetched: whoever
    drives the consumer says what it has processed (`positions.processed`). All methods belong to the
    event loop that runs it. ``clock`` gives the microseconds that stamp the events; ``exchanges`` is told
    what the member and its coordinator say to each other.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap: Sequence[Endpoint],
        on_event: OnEvent,
        *,
        application: Application | None = None,
        clock: Callable[[], int] = monotonic_us,
        exchanges: Exchanges | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        self.config = config
        self._application = application or Application()
        self._telling = Telling(clock, on_event)
        self._clock = clock
        self._assignors: Mapping[str, Assignor] = {
            assignor.name: assignor for assignor in map(get, config.partition_assignment_strategy)
        }
        self.cluster = Cluster(bootstrap, config.client_id, config.request_timeout_ms, security)
        self.membership = Membership(config, tuple(self._assignors.values()), self._topics, self._emit)
        self._watch = TopicWatch(config, self.cluster, self.membership, self._changed)
        self.positions = Positions(self._application.catch_up)
        self._running = asyncio.Event()
        self._running.set()
        self._link = CoordinatorLink(
            self.cluster,
            config.group_id,
            config.retry_backoff_ms,
            self._running,
            self._found,
            self._lost,
            exchanges,
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
        self._listener = RebalanceListener(
            self.membership, self.positions, self._application, self._heartbeats.timers, clock, self._telling
        )
        self._background: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._life: asyncio.Task[Any] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._lookup: asyncio.Task[None] | None = None
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

        Cancelled, it closes its sockets and says nothing. Raises InputError for a broker that is too old.
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
            raise problems.exceptions[0] from None  # what one task could not go on with
        finally:
            await self._link.close()
            self.cluster.close()

    def close(self) -> None:
        """The application calls close(): `run` returns when that is done."""
        self._closing.set()

    def crash(self) -> None:
        """SIGKILL: nothing more is sent, nothing is heard any more."""
        if self._crashed or self._life is None or self._life.done():
            return
        membership, config = self.membership, self.config
        stood = self.positions.stood(membership.owned)
        self._emit(
            events.MemberCrashed(
                config.group_id,
                config.client_id,
                membership.generation.member_id,
                membership.generation.id,
                tuple(map(str, membership.owned)),
                stood.positions,
                stood.committed,
            )
        )
        self._crashed = True
        self._telling.end()
        self._link.drop()
        self.cluster.close()
        self._life.cancel()

    @property
    def failure(self) -> str | None:
        """What ended the consumer: Kafka's name of an error, or the exception that poll() would throw."""
        return self.membership.failure or (None if self._threw is None else self._threw.name)

    @property
    def closing(self) -> bool:
        """close() has been called, or a fatal error closes it."""
        return self._closing.is_set()

    @property
    def without_offset(self) -> tuple[TopicPartition, ...]:
        """auto.offset.reset is none, and these have no committed offset."""
        return self._offsets.without_offset

    async def commit(self, offsets: CommittedOffsets) -> Error | Disconnected:
        """Commit these, as commitSync() sends it: the first error of the answer."""
        error = await self._link.find()
        if error is not Error.NONE:
            return error
        answer = await self._commits.commit(offsets)
        self._changed()
        return answer

    async def ask_coordinator(self, request: Request) -> Response | Disconnected | Error:
        """Any request that is no member's; `Error` where no coordinator is to be had."""
        error = await self._link.find()
        if error is not Error.NONE:
            return error
        return await self._link.ask(request, self.config.request_timeout_ms)

    def refresh_topics(self) -> None:
        """What was known of the topics has turned out to be old."""
        self._watch.refresh_soon()

    def pause(self) -> None:
        """SIGSTOP: nothing is sent and no answer is heard until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    def cut_off(self) -> None:
        """The network to the brokers is gone until `reconnect`; the process goes on."""
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
        """Carry out what the membership asks for until it asks for nothing more."""
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

    async def _commit_positions(self, _: CommitPositions) -> Error | Disconnected:
        return await self._commits.commit()

    async def _run_callback(self, operation: RunCallback) -> None:
        if operation.kind is CallbackKind.ASSIGNED:
            self._stop_lookup()
            self._commits.reset()
        elif self._closing.is_set() and self._beating is not None:
            self._beating.cancel()  # close() ends the heartbeat thread before it runs the listener
        await self._listener.run(operation)

    async def _await_poll(self, _: AwaitPoll) -> None:
        self._look_up_positions()
        await self.polling.until_due()

    async def _assign(self, operation: Assign) -> Plan | AssignmentFailed:
        response = operation.response
        assignor = self._assignors.get(response.protocol or "")
        if assignor is None:
            return AssignmentFailed("IllegalStateException", f"{response.protocol} was chosen")
        await self._watch.cover(response.members)
        started_us = self._clock()
        topics = self.cluster.topics
        plan = lead(assignor, self.membership.rebalance_protocol, topics, response.members)
        await sleep_us(self._application.assign_us(len(response.members), sum(topics.values())))
        config, generation = self.config, self.membership.generation
        self._emit(
            events.AssignmentComputed(
                config.group_id,
                config.client_id,
                generation.member_id,
                generation.id,
                assignor.name,
                self._clock() - started_us,
                len(response.members),
            )
        )
        return plan

    # -- parts -----------------------------------------------------------------------------------

    def _topics(self) -> Mapping[str, int]:
        return self.cluster.topics

    def _look_up_positions(self) -> None:
        if self._lookup is None and self.positions.missing():
            self._lookup = self._spawn(self._find_positions())

    def _stop_lookup(self) -> None:
        lookup, self._lookup = self._lookup, None
        if lookup is not None:
            lookup.cancel()

    async def _find_positions(self) -> None:
        error = await self._offsets.find()
        self._lookup = None
        if error is not Error.NONE:
            self.polling.failed = error
        self._listener.positions_found()
        self._changed()

    def _commit_soon(self) -> None:
        _ = self._spawn(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        await self._commits.commit_in_background()
        self._changed()

    def _changed(self) -> None:
        """Something has been answered: let everybody look at the membership."""
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
        self._telling.tell(event)


_CARRIES_OUT: Mapping[type[Operation], Callable[[WireConsumer, Any], Awaitable[Any]]] = {
    Send: WireConsumer._send,
    FindCoordinator: WireConsumer._find_coordinator,
    AwaitPoll: WireConsumer._await_poll,
    Backoff: WireConsumer._back_off,
    RunCallback: WireConsumer._run_callback,
    StopProcessing: WireConsumer._stop_processing,
    CommitPositions: WireConsumer._commit_positions,
    Assign: WireConsumer._assign,
}
