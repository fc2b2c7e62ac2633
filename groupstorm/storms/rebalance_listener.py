"""What a process does when a rebalance gives it partitions or takes them (ConsumerRebalanceListener)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients import events
from groupstorm.clients.generation import Generation
from groupstorm.clients.operations import ASSIGNED, CallbackKind, Disconnected, RunCallback
from groupstorm.coordinator.messages import OffsetFetch, Response
from groupstorm.storms.records import names
from groupstorm.storms.restoring import State

if TYPE_CHECKING:
    from groupstorm.storms.consumer import VirtualConsumer

OFFSET_FETCH_VERSION = 9

#: What a process draws for its callbacks at one instant; its other draws have other numbers.
DRAW_CALLBACK = 3

_GIVEN_UP: Mapping[CallbackKind, Callable[..., events.Event]] = {
    CallbackKind.REVOKED: events.PartitionsRevoked,
    CallbackKind.LOST: events.PartitionsLost,
}


class RebalanceListener:
    """The callbacks of one process, each of which takes its time."""

    __slots__ = ("_consumer", "_state")

    def __init__(self, consumer: VirtualConsumer) -> None:
        self._consumer = consumer
        self._state = State()

    def run(self, operation: RunCallback) -> Any:
        """Carry the operation out: its result, or that it takes time."""
        if operation.kind is ASSIGNED:
            return self._take(operation.partitions)
        return self._give_up(operation)

    def _give_up(self, operation: RunCallback) -> Any:
        return self._consumer.later(self._let_go(operation))

    def _let_go(self, operation: RunCallback) -> int:
        """Process these no more; how long the callback will take."""
        consumer = self._consumer
        consumer.pulse.stop_commits()
        consumer.pulse.settle_commits()
        positions = consumer.work.drop(operation.partitions, consumer.clock.now_us)
        duration_us = self._duration_us("revoke_callback_ms")
        generation = consumer.membership.generation
        consumer.emit(
            _GIVEN_UP[operation.kind](
                consumer.config.group_id,
                consumer.name,
                generation.member_id,
                generation.id,
                names(operation.partitions),
                positions,
                consumer.world.committed(operation.partitions),
                duration_us,
                operation.cause,
            )
        )
        consumer.outlasts_poll_interval(duration_us)
        return duration_us

    def _take(self, added: tuple[TopicPartition, ...]) -> Any:
        """Run the callback; then, beside the membership's next steps, learn where to start and fetch."""
        consumer = self._consumer
        generation = consumer.membership.generation
        restore_us = self._restore_us()
        if not added:
            self._fetch(added, generation, 0)
            return None
        duration_us = self._duration_us("assign_callback_ms") + restore_us
        if duration_us:
            consumer.clock.after(duration_us, self._look_up, added, generation, duration_us)
        else:
            self._look_up(added, generation, duration_us)
        consumer.outlasts_poll_interval(duration_us)
        return consumer.later(duration_us)

    def _look_up(self, added: tuple[TopicPartition, ...], generation: Generation, duration_us: int) -> None:
        """Ask for the committed offsets, again and again if the connection is lost."""
        consumer = self._consumer
        if not consumer.alive:
            return
        topics: dict[str, tuple[int, ...]] = {}
        for topic, partition in added:
            topics[topic] = (*topics.get(topic, ()), partition)
        request = OffsetFetch(consumer.config.group_id, topics, OFFSET_FETCH_VERSION, None, -1, True)

        def answered(response: Response | Disconnected) -> None:
            if isinstance(response, Disconnected):
                consumer.connection.find_coordinator(lambda: self._look_up(added, generation, duration_us))
            else:
                self._fetch(added, generation, duration_us)

        consumer.connection.send(request, consumer.config.request_timeout_ms, answered)

    def _fetch(self, added: tuple[TopicPartition, ...], generation: Generation, duration_us: int) -> None:
        """The member has taken its assignment: it fetches what is still its own."""
        consumer = self._consumer
        if not consumer.alive:
            return
        begun: tuple[TopicPartition, ...] = ()
        positions: tuple[int, ...] = ()
        if added:
            now_us = consumer.clock.now_us
            owned = set(consumer.membership.owned)
            begun = tuple(tp for tp in added if tp in owned and tp not in consumer.work)
            positions = consumer.work.start(begun, self._starts(begun), now_us)
            if consumer.standstill.lasts:
                consumer.work.stop(begun, now_us)
        consumer.emit(
            events.PartitionsAssigned(
                consumer.config.group_id,
                consumer.name,
                generation.member_id,
                generation.id,
                names(begun),
                positions,
                duration_us,
            )
        )
        consumer.world.checkers.taken(consumer.world, begun, generation.id)

    def _starts(self, begun: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        """The committed offsets; -1 where there is none."""
        return self._consumer.world.committed(begun)

    def _restore_us(self) -> int:
        """Before the callback returns, as a consumer does that seeks and reads its stores anew."""
        rebuilt = self._state.assigned(self._consumer.membership.owned)
        return rebuilt * self._duration_us("restore_ms") if rebuilt else 0

    def _duration_us(self, setting: str) -> int:
        distribution = self._consumer.world.settings.distribution(setting)
        return self._consumer.drawn_us(distribution, DRAW_CALLBACK)
