"""The base of the drivers of both group protocols: commits, positions, topic metadata, and the listener.

`OwnedPartitions` adds, pauses and takes partitions as a rebalance says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import GIVEN_UP_EVENTS, CallbackKind, RunCallback
from groupstorm.clients.wire.cluster import TopicWatch
from groupstorm.clients.wire.offsets import Commits, OffsetLookup
from groupstorm.clients.wire.parts import ApplicationPolling, ConsumerParts, MemberStatus
from groupstorm.clients.wire.positions import PartitionOffsets
from groupstorm.coordinator.errors import Error
from groupstorm.trace.events import member as events


class _Assignment(NamedTuple):
    """An assignment whose positions are being looked up."""

    added: tuple[TopicPartition, ...]
    generation: Generation
    duration_us: int


class OwnedPartitions:
    """Calls the listener (ConsumerRebalanceListener), keeps `Positions` to it, and emits the events.

    ``work`` awaits the imagined work of a listener, in microseconds.
    """

    def __init__(
        self, parts: ConsumerParts, membership: MemberStatus, work: Callable[[int], Awaitable[None]]
    ) -> None:
        self._parts = parts
        self._membership = membership
        self._work = work
        self._assignments: list[_Assignment] = []

    async def run(self, operation: RunCallback) -> bool:
        """Run a callback. Returns whether the listener has raised."""
        application, positions = self._parts.application, self._parts.positions
        duration_us = application.callback_us(operation.kind, operation.partitions)
        application.on_callback(operation.kind, operation.partitions)
        if operation.kind is CallbackKind.ASSIGNED:
            positions.own(self._membership.owned)
            duration_us, failed = await self._listen(operation, duration_us)
            self._assignments.append(
                _Assignment(operation.partitions, self._membership.generation, duration_us)
            )
            self.positions_found()
            return failed
        if application.listen is not None:
            await application.at_poll()
            positions.stop(operation.partitions)
            return await self._listen_and_give_up(operation)
        offsets = positions.drop(operation.partitions)
        self._parts.emitter.emit(self._given_up(operation, offsets, duration_us))
        await self._work(duration_us)
        return False

    def positions_found(self) -> None:
        """Emit the assignments whose partitions all have a position, in their order."""
        positions = self._parts.positions
        missing = set(positions.missing())
        while self._assignments and missing.isdisjoint(self._assignments[0].added):
            added, generation, duration_us = self._assignments.pop(0)
            owned = set(self._membership.owned)
            begun = tuple(partition for partition in added if partition in owned)
            names, begins = tuple(map(str, begun)), positions.offsets_of(begun).positions
            self._parts.emitter.emit(
                events.PartitionsAssigned(*self._parts.who(generation), names, begins, duration_us)
            )

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Hand out no records of these, which the member keeps during a round, or is to give up."""
        self._parts.positions.stop(partitions)
        self._emit_pause(events.PartitionsPaused, partitions)

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Hand out records of these again."""
        self._parts.positions.resume(partitions)
        self._emit_pause(events.PartitionsResumed, partitions)

    def _emit_pause(
        self,
        event: type[events.PartitionsPaused | events.PartitionsResumed],
        partitions: Sequence[TopicPartition],
    ) -> None:
        """Emit an event for the partitions that have a position."""
        positions = self._parts.positions
        begun = tuple([tp for tp in partitions if positions.position(tp) is not None])
        if begun:
            group, client, member_id, _ = self._parts.who(self._membership.generation)
            names = tuple(map(str, begun))
            self._parts.emitter.emit(
                event(group, client, member_id, names, positions.offsets_of(begun).positions)
            )

    async def _listen_and_give_up(self, operation: RunCallback) -> bool:
        """Call the listener, which may still commit its positions; forget the partitions after that."""
        emitter = self._parts.emitter
        began_us = emitter.hold()
        try:
            _, failed = await self._listen(operation, 0)
        finally:
            offsets = self._parts.positions.drop(operation.partitions)
            emitter.release(began_us, self._given_up(operation, offsets, emitter.now_us() - began_us))
        return failed

    async def _listen(self, operation: RunCallback, duration_us: int) -> tuple[int, bool]:
        """Run the listener. Returns how long it worked, and whether it has raised.

        It works for ``duration_us``, a real one until it returns.
        """
        listen = self._parts.application.listen
        if listen is None:
            await self._work(duration_us)
            return duration_us, False
        began_us = self._parts.clock()
        failed = await listen(operation)
        return self._parts.clock() - began_us, failed

    def _given_up(self, operation: RunCallback, offsets: PartitionOffsets, duration_us: int) -> events.Event:
        who, names = self._parts.who(self._membership.generation), tuple(map(str, operation.partitions))
        return GIVEN_UP_EVENTS[operation.kind](*who, names, *offsets, duration_us, operation.cause)


class MembershipDriver(ABC):
    """Carries out what one ``membership`` asks for. A task of the consumer runs `run`, and then `leave`.

    ``work`` awaits the imagined work of a listener, in microseconds.
    """

    polling: ApplicationPolling

    def __init__(
        self, parts: ConsumerParts, membership: MemberStatus, work: Callable[[int], Awaitable[None]]
    ) -> None:
        self.parts = parts
        self.membership = membership
        self.watch = TopicWatch(parts.cluster, membership, self.changed)
        self.commits = Commits(parts, membership)
        self.offsets = OffsetLookup(parts, membership, self.coordinator_moved, self._positions_found)
        self.partitions = OwnedPartitions(parts, membership, work)
        parts.link.on_found, parts.link.on_lost = self.coordinator_found, self.coordinator_lost

    @abstractmethod
    async def run(self) -> None:
        """From the first poll() until a fatal error ends the membership. Raises PollThrew."""

    @abstractmethod
    async def leave(self, leave_group: bool | None) -> None:
        """Consumer.close(); ``leave_group`` replaces `ConsumerConfig.leave_group_on_close` if it is given.

        If it is cancelled, `abandon` follows.
        """

    @abstractmethod
    async def abandon(self) -> None:
        """close() was not done in time."""

    @abstractmethod
    def changed(self) -> None:
        """A response has arrived: every part looks at the membership again."""

    @abstractmethod
    def coordinator_found(self) -> None:
        """The connection to the coordinator is open."""

    @abstractmethod
    def coordinator_lost(self) -> None:
        """The connection to the coordinator is gone."""

    @abstractmethod
    def coordinator_moved(self) -> None:
        """A response says that the broker is not the coordinator."""

    @abstractmethod
    def fail(self, error: Error) -> None:
        """The next poll() has to throw ``error``."""

    def _positions_found(self, error: Error) -> None:
        """The search for positions has ended."""
        if error is not Error.NONE:
            self.fail(error)
        self.partitions.positions_found()
        self.changed()

    def commit_soon(self) -> None:
        """Auto-commit, in a task."""
        _ = self.parts.spawn(self._commit_in_background())

    async def _commit_in_background(self) -> None:
        await self.commits.commit_in_background()
        self.changed()
