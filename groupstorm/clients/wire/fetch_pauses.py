"""A wire member hands out no records of partitions that it keeps during a round, or is to give up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.wire.member_status import MemberStatus
from groupstorm.clients.wire.positions import Positions
from groupstorm.trace.events import member as events


class FetchPauses:
    """Stops and resumes owned partitions, and emits an event for those that have a position."""

    def __init__(
        self, membership: MemberStatus, positions: Positions, emit: Callable[[events.Event], None]
    ) -> None:
        self._membership = membership
        self._positions = positions
        self._emit = emit

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        self._positions.stop(partitions)
        self._changed(events.PartitionsPaused, partitions)

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        self._positions.resume(partitions)
        self._changed(events.PartitionsResumed, partitions)

    def _changed(
        self,
        event: type[events.PartitionsPaused | events.PartitionsResumed],
        partitions: Sequence[TopicPartition],
    ) -> None:
        begun = tuple([tp for tp in partitions if self._positions.position(tp) is not None])
        if begun:
            config, member_id = self._membership.config, self._membership.generation.member_id
            names, positions = tuple(map(str, begun)), self._positions.offsets_of(begun).positions
            self._emit(event(config.group_id, config.client_id, member_id, names, positions))
