"""What a consumer does when a rebalance adds partitions or takes them away (ConsumerRebalanceListener)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.member_session import Generation
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import GIVEN_UP_EVENTS, CallbackKind, RunCallback
from groupstorm.clients.wire.application import ApplicationBehaviour
from groupstorm.clients.wire.event_emitter import EventEmitter
from groupstorm.clients.wire.heartbeat_timers import HeartbeatTimers
from groupstorm.clients.wire.positions import PartitionOffsets, Positions
from groupstorm.trace.events import member as events


class _Assignment(NamedTuple):
    """An assignment whose positions are being looked up."""

    added: tuple[TopicPartition, ...]
    generation: Generation
    duration_us: int


class RebalanceCallbacks:
    """The listener's calls of one consumer, and the events of these calls."""

    def __init__(
        self,
        membership: Membership,
        positions: Positions,
        application: ApplicationBehaviour,
        timers: HeartbeatTimers,
        clock: Callable[[], int],
        emitter: EventEmitter,
    ) -> None:
        self._membership = membership
        self._positions = positions
        self._application = application
        self._timers = timers
        self._clock = clock
        self._emitter = emitter
        self._assignments: list[_Assignment] = []

    async def run(self, operation: RunCallback) -> None:
        duration_us = self._application.callback_us(operation.kind, operation.partitions)
        self._application.on_callback(operation.kind, operation.partitions)
        if operation.kind is CallbackKind.ASSIGNED:
            self._positions.own(self._membership.owned)
            duration_us = await self._listen(operation, duration_us)
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
            await self._listen_and_give_up(operation)

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

    async def _listen_and_give_up(self, operation: RunCallback) -> None:
        """Call the listener, which may still commit its positions; forget the partitions after that."""
        began_us = self._emitter.hold()
        try:
            await self._listen(operation, 0)
        finally:
            offsets = self._positions.drop(operation.partitions)
            self._emitter.release(began_us, self._given_up(operation, offsets, self._clock() - began_us))

    async def _listen(self, operation: RunCallback, duration_us: int) -> int:
        """Run the listener. Returns how long it worked: ``duration_us``, or until a real one returned."""
        listen = self._application.listen
        if listen is None:
            await self._work(duration_us)
            return duration_us
        began_us = self._clock()
        await listen(operation)
        return self._clock() - began_us

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

    async def _work(self, duration_us: int) -> None:
        """The listener works: the application does not poll meanwhile."""
        if duration_us:
            self._timers.left_poll(self._clock())
            await asyncio.sleep(duration_us / 1_000_000)
            self._timers.entered_poll()
