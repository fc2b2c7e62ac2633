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
from groupstorm.clients.wire.positions import Positions

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
        emit: Callable[[events.Event], None],
    ) -> None:
        self._membership = membership
        self._positions = positions
        self._application = application
        self._timers = timers
        self._clock = clock
        self._emit = emit
        self._taken: list[_Taken] = []

    async def run(self, operation: RunCallback) -> None:
        duration_us = self._application.callback_us(operation.kind, operation.partitions)
        self._application.on_callback(operation.kind, operation.partitions)
        if operation.kind is CallbackKind.ASSIGNED:
            self._positions.own(self._membership.owned)
            await self._work(duration_us)
            self._taken.append(_Taken(operation.partitions, self._membership.generation, duration_us))
            self.positions_found()
        else:
            self._give_up(operation, duration_us)
            await self._work(duration_us)

    def positions_found(self) -> None:
        """Tell of the assignments whose partitions all have a position, in their order."""
        missing = set(self._positions.missing())
        while self._taken and missing.isdisjoint(self._taken[0].added):
            added, generation, duration_us = self._taken.pop(0)
            owned = set(self._membership.owned)
            begun = tuple(partition for partition in added if partition in owned)
            config = self._membership.config
            self._emit(
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

    def _give_up(self, operation: RunCallback, duration_us: int) -> None:
        config, generation = self._membership.config, self._membership.generation
        stood = self._positions.drop(operation.partitions)
        self._emit(
            _GIVEN_UP[operation.kind](
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
        )

    async def _work(self, duration_us: int) -> None:
        """The listener works: the application is away from poll() meanwhile."""
        if duration_us:
            self._timers.left_poll(self._clock())
            await asyncio.sleep(duration_us / 1_000_000)
            self._timers.entered_poll()
