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
from groupstorm.clients.leadership import EncodedAssignments, lead
from groupstorm.clients.membership import Flow, Membership
from groupstorm.clients.wire.heartbeats import Heartbeats
from groupstorm.clients.wire.membership_driver import MembershipDriver
from groupstorm.clients.wire.parts import ConsumerParts
from groupstorm.clients.wire.polling import ClassicPolling, PollThrew
from groupstorm.clients.wire.waiting import sleep_us
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroup, Response
from groupstorm.trace.events import member as events


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
