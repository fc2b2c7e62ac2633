"""The classic group protocol over TCP: carry out the operations of a `Membership`.

`groupstorm.storms.world.consumer` does the same in virtual time. Both drive the same membership and emit the
same events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from groupstorm.assignors.leader import LeaderMemory
from groupstorm.assignors.registry import get
from groupstorm.clients import operations
from groupstorm.clients.error_tables import RejoinCause
from groupstorm.clients.leadership import EncodedAssignments, lead
from groupstorm.clients.membership import Flow, Membership
from groupstorm.clients.wire.cluster import TopicWatch
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.membership_driver import MembershipDriver
from groupstorm.clients.wire.offsets import Commits
from groupstorm.clients.wire.parts import ApplicationPolling, ConsumerParts, PollThrew
from groupstorm.clients.wire.waiting import sleep_us
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroup, Response
from groupstorm.trace.events import member as events


class ClassicPolling(ApplicationPolling):
    """The calls between two rounds (ConsumerCoordinator.poll)."""

    def __init__(
        self,
        parts: ConsumerParts,
        membership: Membership,
        watch: TopicWatch,
        heartbeats: Heartbeats,
        commits: Commits,
        commit_soon: Callable[[], None],
    ) -> None:
        """``commit_soon`` starts a commit in the background."""
        super().__init__(parts)
        #: The error of a background task, for the next poll() to throw.
        self.failed: Error | None = None
        self._membership = membership
        self._watch = watch
        self._heartbeats = heartbeats
        self._commits = commits
        self._commit_soon = commit_soon

    def leave(self) -> None:
        super().leave()
        self.polled()

    def enter(self) -> None:
        self._heartbeats.timers.entered_poll()
        super().enter()

    def polled(self) -> None:
        if self._waits:
            self._heartbeats.left_poll()

    @property
    def has_work(self) -> bool:
        return self._waits and (self._is_due() or self._commits.due or self._fatal() is not None)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """poll() joins again, after a running round."""
        self.subscription = topics
        if self._waits:
            self._take_subscription()
            self.wake()
            self._parts.application.on_change()

    async def until_due(self) -> None:
        """Wait until the member has to join and, if the library joins inside poll(), the application polls.

        Raises PollThrew.
        """
        self._take_subscription()
        self._waits = True
        joins_at_poll = self._membership.config.profile.rejoins_at_poll
        try:
            if not self._polls:
                self.leave()
            while not (
                self._is_due() and (self._polls or not (joins_at_poll or self._membership.awaits_poll))
            ):
                await self._wake_event.wait(self._commits.next_us if self._polls else None)
                await self._parts.running.wait()
                if self._polls:
                    self._poll_once()
            if joins_at_poll:
                await sleep_us(self._parts.application.poll_wait_us())
                while self._is_away():
                    await self._wake_event.wait(None)
        finally:
            self._waits = False

    def _is_due(self) -> bool:
        return self._membership.rejoin_needed or self._membership.failure is not None

    def _is_away(self) -> bool:
        return not self._polls

    def _fatal(self) -> Error | None:
        return self._heartbeats.fatal or self.failed

    def _poll_once(self) -> None:
        """The rest of poll(): throw the error of a background task, start an auto-commit."""
        fatal = self._fatal()
        if fatal is not None:
            raise PollThrew(fatal.name)
        if self._commits.due:
            self._commits.reset()
            self._commit_soon()

    def _take_subscription(self) -> None:
        membership = self._membership
        if membership.config.topics != self.subscription:
            membership.config = replace(membership.config, topics=self.subscription)
            membership.subscribed = self.subscription
            self._watch.refresh_soon()
            membership.request_rejoin(RejoinCause.SUBSCRIPTION_CHANGED)


class ClassicDriver(MembershipDriver):
    """Drives a member that joins with JoinGroup and SyncGroup."""

    membership: Membership

    def __init__(self, parts: ConsumerParts) -> None:
        config = parts.config
        assignors = tuple(map(get, config.partition_assignment_strategy))
        membership = Membership(config, assignors, lambda: parts.cluster.topics, parts.emitter.emit)
        super().__init__(parts, membership, self._listener_works)
        self._heartbeats = Heartbeats(parts, membership, self.changed)
        self.polling: ClassicPolling = ClassicPolling(
            parts, membership, self.watch, self._heartbeats, self.commits, self.commit_soon
        )
        self._leader_memory = LeaderMemory()
        self._beating: asyncio.Task[None] | None = None
        #: When the last JoinGroup left, in microseconds; None before the first one.
        self._joined_us: int | None = None

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        self._beating = self.parts.spawn(self._heartbeats.run())
        await self.watch.known.wait()
        await self._drive(self.membership.run())

    async def leave(self, leave_group: bool | None) -> None:
        membership = self.membership
        if leave_group is not None:
            membership.config = replace(membership.config, leave_group_on_close=leave_group)
        await self._drive(membership.close())

    async def abandon(self) -> None:
        group, client, member_id, _ = self.parts.who(self.membership.generation)
        self.parts.emitter.emit(events.MemberClosed(group, client, member_id, "silent"))

    # -- what others report ----------------------------------------------------------------------

    def changed(self) -> None:
        if not self.membership.coordinator_known:
            self.parts.link.drop()
        self._heartbeats.follow()
        self.polling.wake()
        self.parts.application.on_change()

    def coordinator_found(self) -> None:
        self.membership.coordinator_known = True
        self._heartbeats.timers.coordinator_found(self.parts.clock())

    def coordinator_lost(self) -> None:
        self.membership.coordinator_known = False
        self._heartbeats.follow()

    def coordinator_moved(self) -> None:
        self.membership.coordinator_known = False
        self.changed()

    def fail(self, error: Error) -> None:
        self.polling.failed = error

    # -- the membership's operations -------------------------------------------------------------

    async def _drive(self, flow: Flow) -> None:
        """Carry out the membership's operations until its flow ends."""
        result: Any = None
        with closing(flow):
            while True:
                try:
                    operation = flow.send(result)
                except StopIteration:
                    self.changed()
                    return
                self.changed()
                result = await _CARRIES_OUT[type(operation)](self, operation)
                await self.parts.running.wait()

    async def _send(self, operation: operations.Send) -> Response | operations.Disconnected:
        if isinstance(operation.request, JoinGroup):
            self._joined_us = self.parts.clock()
        return await self.parts.link.ask(operation.request, operation.timeout_ms)

    async def _find_coordinator(self, _: operations.FindCoordinator) -> None:
        error = await self.parts.link.find()
        if error is not Error.NONE:
            raise PollThrew(error.name)

    async def _await_join_interval(self, operation: operations.AwaitJoinInterval) -> None:
        interval_us = operation.interval_ms * 1000
        if self._joined_us is not None and self.parts.clock() - self._joined_us < interval_us:
            await sleep_us(interval_us)

    async def _stop_processing(self, operation: operations.StopProcessing) -> None:
        await self.parts.application.at_poll()
        self.parts.positions.stop(operation.partitions)

    async def _pause_fetching(self, operation: operations.PauseFetching) -> None:
        self.partitions.pause(operation.partitions)

    async def _resume_fetching(self, operation: operations.ResumeFetching) -> None:
        self.partitions.resume(operation.partitions)

    async def _run_callback(self, operation: operations.RunCallback) -> None:
        if operation.kind is operations.CallbackKind.ASSIGNED:
            self.offsets.stop()
            self.commits.reset()
        elif self.parts.closing.is_set() and self._beating is not None:
            self._beating.cancel()  # close() ends the heartbeat thread, then runs the listener
        _ = await self.partitions.run(operation)  # poll() throws what the listener raises; the round goes on

    async def _await_poll(self, _: operations.AwaitPoll) -> None:
        self.offsets.start()
        await self.polling.until_due()

    async def _assign(self, operation: operations.Assign) -> EncodedAssignments | operations.AssignmentFailed:
        """Complete the leader's topic metadata, run the assignor, emit the event."""
        parts, assignor, members = self.parts, operation.assignor, operation.response.members
        await self.watch.cover(members)
        started_us, topics = parts.clock(), parts.cluster.topics
        self.membership.assignor_begins()
        plan = lead(assignor, self.membership.rebalance_protocol, topics, members, self._leader_memory)
        await sleep_us(parts.application.assign_us(len(members), sum(topics.values())))
        who, duration_us = parts.who(self.membership.generation), parts.clock() - started_us
        parts.emitter.emit(events.AssignmentComputed(*who, assignor.name, duration_us, len(members)))
        return plan

    async def _listener_works(self, duration_us: int) -> None:
        """The application does not poll meanwhile."""
        if duration_us:
            timers = self._heartbeats.timers
            timers.left_poll(self.parts.clock())
            await sleep_us(duration_us)
            timers.entered_poll()


_CARRIES_OUT: Mapping[type[operations.Operation], Callable[[ClassicDriver, Any], Awaitable[Any]]] = {
    operations.Send: ClassicDriver._send,
    operations.FindCoordinator: ClassicDriver._find_coordinator,
    operations.AwaitPoll: ClassicDriver._await_poll,
    operations.Backoff: lambda _, operation: asyncio.sleep(operation.delay_ms / 1000),
    operations.AwaitJoinInterval: ClassicDriver._await_join_interval,
    operations.RunCallback: ClassicDriver._run_callback,
    operations.StopProcessing: ClassicDriver._stop_processing,
    operations.PauseFetching: ClassicDriver._pause_fetching,
    operations.ResumeFetching: ClassicDriver._resume_fetching,
    operations.ReturnRecords: lambda driver, _: sleep_us(driver.parts.application.poll_wait_us()),
    operations.CommitPositions: lambda driver, _: driver.commits.commit(),
    operations.Assign: ClassicDriver._assign,
}
