"""What a consumer does when a rebalance gives it partitions or takes them (ConsumerRebalanceListener)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients import events
from groupstorm.clients.generation import Generation
from groupstorm.clients.membership import Membership
from groupstorm.clients.operations import CallbackKind, RunCallback
from groupstorm.clients.wire.application import Application
from groupstorm.clients.wire.heartbeat_timers import HeartbeatTimers
from groupstorm.clients.wire.positions import Positions, Stood
from groupstorm.clients.wire.telling import Telling

_GIVEN_UP: Mapping[CallbackKind, Callable[..., events.Event]] = {
    CallbackKind.REVOKED: events.PartitionsRevoked,
    CallbackKind.LOST: events.PartitionsLost,
}


class _Taken(NamedTuple):
    """An assignment whose positions are being looked up."""

    added: tuple[TopicPartition, ...]
    generation: Generation
    duration_us: int


class RebalanceListener:
    """The callbacks of one consumer, each of which takes the application's time."""

    def __init__(
        self,
        membership: Membership,
        positions: Positions,
        application: Application,
        timers: HeartbeatTimers,
        clock: Callable[[], int],
        telling: Telling,
    ) -> None:
        self._membership = membership
        self._positions = positions
        self._application = application
        self._timers = timers
        self._clock = clock
        self._telling = telling
        self._taken: list[_Taken] = []

    async def run(self, operation: RunCallback) -> None:
        duration_us = self._application.callback_us(operation.kind, operation.partitions)
        self._application.on_callback(operation.kind, operation.partitions)
        if operation.kind is CallbackKind.ASSIGNED:
            self._positions.own(self._membership.owned)
            duration_us = await self._listen(operation, duration_us)
            self._taken.append(_Taken(operation.partitions, self._membership.generation, duration_us))
            self.positions_found()
        elif self._application.listen is None:
            stood = self._positions.drop(operation.partitions)
            self._telling.tell(self._given_up(operation, stood, duration_us))
            await self._work(duration_us)
        else:
            await self._application.at_poll()
            self._positions.stop(operation.partitions)
            await self._listen_and_give_up(operation)

    def positions_found(self) -> None:
        """Tell of the assignments whose partitions all have a position, in their order."""
        missing = set(self._positions.missing())
        while self._taken and missing.isdisjoint(self._taken[0].added):
            added, generation, duration_us = self._taken.pop(0)
            owned = set(self._membership.owned)
            begun = tuple(partition for partition in added if partition in owned)
            config = self._membership.config
            self._telling.tell(
                events.PartitionsAssigned(
                    config.group_id,
                    config.client_id,
                    generation.member_id,
                    generation.id,
                    tuple(map(str, begun)),
                    self._positions.stood(begun).positions,
                    duration_us,
                )
            )

    async def _listen_and_give_up(self, operation: RunCallback) -> None:
        """The listener may still commit where its partitions stand: they are forgotten after it."""
        began_us = self._telling.hold()
        try:
            await self._listen(operation, 0)
        finally:
            stood = self._positions.drop(operation.partitions)
            self._telling.release(began_us, self._given_up(operation, stood, self._clock() - began_us))

    async def _listen(self, operation: RunCallback, duration_us: int) -> int:
        """How long the listener works, in microseconds: ``duration_us``, or until it has returned."""
        listen = self._application.listen
        if listen is None:
            await self._work(duration_us)
            return duration_us
        began_us = self._clock()
        await listen(operation)
        return self._clock() - began_us

    def _given_up(self, operation: RunCallback, stood: Stood, duration_us: int) -> events.Event:
        config, generation = self._membership.config, self._membership.generation
        return _GIVEN_UP[operation.kind](
            config.group_id,
            config.client_id,
            generation.member_id,
            generation.id,
            tuple(map(str, operation.partitions)),
            stood.positions,
            stood.committed,
            duration_us,
            operation.cause,
        )

    async def _work(self, duration_us: int) -> None:
        """The listener works: the application is away from poll() meanwhile."""
        if duration_us:
            self._timers.left_poll(self._clock())
            await asyncio.sleep(duration_us / 1_000_000)
            self._timers.entered_poll()
