"""What a consumer does when a rebalance adds partitions or takes them away (ConsumerRebalanceListener)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import GIVEN_UP_EVENTS, CallbackKind, RunCallback
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.event_emitter import EventEmitter
from groupstorm.clients.wire.member_status import MemberStatus
from groupstorm.clients.wire.positions import PartitionOffsets, Positions
from groupstorm.trace.events import member as events


class _Assignment(NamedTuple):
    """An assignment whose positions are being looked up."""

    added: tuple[TopicPartition, ...]
    generation: Generation
    duration_us: int


class RebalanceCallbacks:
    """The listener's calls of one consumer, and the events of these calls.

    ``work`` awaits the imagined work of a listener, in microseconds.
    """

    def __init__(
        self,
        membership: MemberStatus,
        positions: Positions,
        application: ApplicationBehaviour,
        work: Callable[[int], Awaitable[None]],
        emitter: EventEmitter,
    ) -> None:
        self._membership = membership
        self._positions = positions
        self._application = application
        self._work = work
        self._emitter = emitter
        self._assignments: list[_Assignment] = []

    async def run(self, operation: RunCallback) -> bool:
        """Returns whether the listener has raised."""
        failed = False
        duration_us = self._application.callback_us(operation.kind, operation.partitions)
        self._application.on_callback(operation.kind, operation.partitions)
        if operation.kind is CallbackKind.ASSIGNED:
            self._positions.own(self._membership.owned)
            duration_us, failed = await self._listen(operation, duration_us)
            self._assignments.append(
                _Assignment(operation.partitions, self._membership.generation, duration_us)
            )
            self.positions_found()
        elif self._application.listen is None:
            offsets = self._positions.drop(operation.partitions)
            self._emitter.emit(self._given_up(operation, offsets, duration_us))
            await self._work(duration_us)
        else:
            await self._application.at_poll()
            self._positions.stop(operation.partitions)
            failed = await self._listen_and_give_up(operation)
        return failed

    def positions_found(self) -> None:
        """Emit the assignments whose partitions all have a position, in their order."""
        missing = set(self._positions.missing())
        while self._assignments and missing.isdisjoint(self._assignments[0].added):
            added, generation, duration_us = self._assignments.pop(0)
            owned = set(self._membership.owned)
            begun = tuple(partition for partition in added if partition in owned)
            config = self._membership.config
            self._emitter.emit(
                events.PartitionsAssigned(
                    config.group_id,
                    config.client_id,
                    generation.member_id,
                    generation.id,
                    tuple(map(str, begun)),
                    self._positions.offsets_of(begun).positions,
                    duration_us,
                )
            )

    async def _listen_and_give_up(self, operation: RunCallback) -> bool:
        """Call the listener, which may still commit its positions; forget the partitions after that."""
        began_us = self._emitter.hold()
        try:
            _, failed = await self._listen(operation, 0)
        finally:
            offsets = self._positions.drop(operation.partitions)
            duration_us = self._emitter.now_us() - began_us
            self._emitter.release(began_us, self._given_up(operation, offsets, duration_us))
        return failed

    async def _listen(self, operation: RunCallback, duration_us: int) -> tuple[int, bool]:
        """Run the listener. Returns how long it worked, and whether it has raised.

        It works for ``duration_us``, a real one until it returns.
        """
        listen = self._application.listen
        if listen is None:
            await self._work(duration_us)
            return duration_us, False
        began_us = self._emitter.now_us()
        failed = await listen(operation)
        return self._emitter.now_us() - began_us, failed

    def _given_up(self, operation: RunCallback, offsets: PartitionOffsets, duration_us: int) -> events.Event:
        config, generation = self._membership.config, self._membership.generation
        return GIVEN_UP_EVENTS[operation.kind](
            config.group_id,
            config.client_id,
            generation.member_id,
            generation.id,
            tuple(map(str, operation.partitions)),
            offsets.positions,
            offsets.committed,
            duration_us,
            operation.cause,
        )
