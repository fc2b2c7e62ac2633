"""One consumer process in real time: a wire member, and an application whose records are only computed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.brokers.contract import RunningBroker
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.operations import CallbackKind
from groupstorm.clients.wire.consumer import WireConsumer
from groupstorm.clients.wire.coordinator_link import RequestObserver
from groupstorm.clients.wire.logs import OffsetReset
from groupstorm.clients.wire.parts import ApplicationBehaviour
from groupstorm.clients.wire.positions import Position, Positions
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.live.clock import RealClock, Spawn
from groupstorm.storms.records.positions import ProcessingRates, Records, Work, names
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.setting_names import EARLIEST
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.member_settings import poll_loop
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.rebalance_callbacks import LocalState
from groupstorm.trace.events import member as events
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source

#: Shorter work between two polls is not worth an event of the real clock.
_SHORT_US: Final = 50_000

#: The application stays inside poll() for so long between two batches, so that the member notices.
_INSIDE_US: Final = 1_000


class ConsumerHost(RequestObserver, Protocol):
    """The world that runs a consumer, as the consumer sees it."""

    seed: int
    settings: Settings
    broker: RunningBroker
    clock: RealClock
    records: Records
    invariants: InvariantChecks
    spawn: Spawn

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""
        ...

    def process_gone(self, consumer: RealConsumer) -> None: ...


class RealConsumer:
    """One incarnation of a process of the scenario."""

    def __init__(self, world: ConsumerHost, index: int, incarnation: int, config: ConsumerConfig) -> None:
        self.index = index
        self.name = config.client_id
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        loop = poll_loop(
            world.settings, world.records.logs, world.seed, index, self.name, incarnation, steps=False
        )
        reset = world.settings.of_member(index).choice("auto.offset.reset")
        self.work = Work(world.records, self.name, loop, reset)
        self.rates = ProcessingRates(world.clock, loop, self._processing_changed)
        self.pauses = RealPauses(world, self)
        self.polls = RealPolls(world.clock, loop, self)
        self._world = world
        self._draws = Stream(world.seed, "application", self.name, incarnation)
        self._drawn = 0
        self.wire = WireConsumer(
            config,
            world.broker.bootstrap,
            self._on_event,
            application=self._application(),
            clock=lambda: world.clock.now_us,
            observer=world,
            security=world.broker.security,
        )

    def start(self) -> None:
        self.started = True
        self._world.spawn(self._live())

    def stop(self) -> None:
        self.pauses.end()
        self.wire.close()

    def crash(self) -> None:
        if self.alive and self.started:
            self.wire.crash()

    def disconnect(self, duration_us: int) -> None:
        if self.alive:
            self.wire.cut_off()
            self._world.clock.after(duration_us, self.wire.reconnect)

    @property
    def settled(self) -> bool:
        membership = self.wire.membership
        return (
            membership.is_settled
            and not self.pauses.lasts
            and set(membership.owned) == set(self.work.partitions)
        )

    @property
    def generation(self) -> int:
        return self.wire.membership.generation.id

    @property
    def identity(self) -> tuple[str, str, str]:
        """The group, the name and the member id, with which the rows of a member begin."""
        return self.wire.config.group_id, self.name, self.wire.membership.generation.member_id

    # -- parts -----------------------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            await self.wire.run()
        finally:
            self.alive = False
            self.rates.stop()
            self._world.process_gone(self)
            if self.on_exit is not None:
                self.on_exit()

    def _application(self) -> ApplicationBehaviour:
        world = self._world
        settings = world.settings
        revoke, assign = (
            settings.distribution("revoke_callback_ms"),
            settings.distribution("assign_callback_ms"),
        )
        restore, state = settings.distribution("restore_ms"), LocalState()
        plan = settings.distribution("assign_ms")
        per_pair_ns = settings.integer("assign_ns_per_member_partition")
        from_start = self.work.reset == EARLIEST

        def callback_us(kind: CallbackKind, partitions: tuple[TopicPartition, ...]) -> int:
            if kind is CallbackKind.ASSIGNED:
                rebuilt = state.assigned(self.wire.membership.owned)
                return assign.at(self._draw()) + rebuilt * restore.at(self._draw()) if partitions else 0
            return revoke.at(self._draw())

        return ApplicationBehaviour(
            callback_us=callback_us,
            poll_wait_us=self._until_poll_us,
            assign_us=lambda members, partitions: (
                plan.at(self._draw()) + per_pair_ns * members * partitions // 1000
            ),
            auto_offset_reset=OffsetReset.EARLIEST if from_start else OffsetReset.LATEST,
            log_end=lambda tp, offset: (
                offset + (0 if from_start else world.records.logs.end(tp, world.clock.now_us))
            ),
            catch_up=self._catch_up,
        )

    def _until_poll_us(self) -> int:
        now_us = self._world.clock.now_us
        return 0 if self.polls.followed else self.work.loop.next_poll_us(now_us) - now_us

    def _draw(self) -> int:
        self._drawn += 1
        return self._draws.at(self._drawn)

    def _catch_up(self, positions: Positions) -> None:
        """A commit needs the positions: advance them as far as the application has come by now."""
        now_us = self._world.clock.now_us
        for partition in self.work.partitions:
            if not positions.processed(partition, Position(self.work.position(partition, now_us))):
                self.work.stop((partition,), now_us)

    def _on_event(self, _time_us: int, event: events.Event) -> None:
        now_us = self._world.clock.now_us
        if isinstance(event, events.PartitionsAssigned):
            self._begin(event, now_us)
        elif isinstance(event, events.PartitionsRevoked | events.PartitionsLost | events.MemberCrashed):
            self.work.drop(self._named(event.partitions), now_us)
        elif isinstance(event, events.PartitionsPaused):
            self.work.stop(self._named(event.partitions), now_us)
            if all(map(self.work.stands_still, self.work.partitions)):
                self.rates.stop()
        elif isinstance(event, events.PartitionsResumed):
            self.work.resume_some(self._named(event.partitions), now_us)
        self._world.trace(Source.MEMBER, event)
        if isinstance(event, events.PartitionsPaused):
            self.rates.changed(began=False)
        elif isinstance(event, events.PartitionsResumed):
            self.rates.changed(began=True)
        if isinstance(event, events.PartitionsAssigned):
            self.rates.changed(began=bool(event.partitions))
            self.polls.follow()

    def _named(self, partitions: Collection[str]) -> tuple[TopicPartition, ...]:
        """Return the partitions of these names that the process works on."""
        return tuple([partition for partition in self.work.partitions if str(partition) in partitions])

    def _processing_changed(
        self, partitions: tuple[str, ...], positions: tuple[int, ...], rates: tuple[int, ...]
    ) -> None:
        self._world.trace(
            Source.MEMBER, events.ProcessingRatesChanged(*self.identity, partitions, positions, rates)
        )

    def _begin(self, event: events.PartitionsAssigned, now_us: int) -> None:
        owned = {str(partition): partition for partition in self.wire.membership.owned}
        begun = tuple(owned[name] for name in event.partitions)
        self.work.start(begun, event.positions, now_us)
        self._world.invariants.generation_completed(
            self.name, self.wire.membership.owned, self.work.partitions
        )


class RealPauses:
    """The times in which a process neither polls nor processes. A pause stops its heartbeats as well."""

    def __init__(self, world: ConsumerHost, consumer: RealConsumer) -> None:
        self.lasts = False
        self._world = world
        self._consumer = consumer
        self._paused = False
        self._number = 0

    def pause(self, duration_us: int) -> None:
        """The process stands still: no heartbeat, no poll, no processing (GC, SIGSTOP)."""
        if self._may_begin():
            self._paused = True
            self._begin(duration_us, "pause", polls=False)
            self._consumer.wire.pause()

    def busy(self, duration_us: int) -> None:
        """The application works on one batch: no poll() until it is done; heartbeats go on."""
        if self._may_begin():
            self._begin(duration_us, "slow-batch", polls=True)
            self._consumer.wire.polling.leave()

    def end(self) -> None:
        """Go on, if it stood still."""
        if not self.lasts:
            return
        self.lasts = False
        consumer, now_us = self._consumer, self._world.clock.now_us
        partitions = consumer.work.partitions
        positions = tuple(consumer.work.positions(now_us).values())
        self._world.trace(
            Source.MEMBER, events.MemberResumed(*consumer.identity, names(partitions), positions)
        )
        consumer.rates.changed(began=True)
        if self._paused:
            self._paused = False
            consumer.wire.resume()
        consumer.wire.polling.enter()
        consumer.polls.follow()

    def _may_begin(self) -> bool:
        return self._consumer.alive and self._consumer.started and not self.lasts

    def _begin(self, duration_us: int, cause: str, polls: bool) -> None:
        self.lasts = True
        self._number += 1
        consumer, now_us = self._consumer, self._world.clock.now_us
        partitions = consumer.work.partitions
        consumer.rates.stop()
        consumer.polls.stop()
        consumer.work.loop.stall(now_us, duration_us, polls)
        positions = tuple(consumer.work.positions(now_us).values())
        self._world.trace(
            Source.MEMBER,
            events.MemberPaused(*consumer.identity, names(partitions), positions, duration_us, cause),
        )
        self._world.clock.after(duration_us, self._end_of, self._number)

    def _end_of(self, number: int) -> None:
        if number == self._number and self._consumer.alive:
            self.end()


class RealPolls:
    """Says when a process is inside poll(): its wire member stops polling while a long batch lasts.

    It follows the computed polls of the process as long as they may be far apart.
    """

    def __init__(self, clock: RealClock, loop: PollLoop, application: RealConsumer) -> None:
        self._clock = clock
        self._loop = loop
        self._application = application
        self._number = 0
        self._away = False
        #: Whether the wire member polls just when the application does.
        self.followed = False

    def follow(self) -> None:
        """The process has other partitions, or goes on after a pause."""
        self._number += 1
        self._come_back()
        self._look(self._number)

    def stop(self) -> None:
        """Something else says from now on when the application polls."""
        self._number += 1
        self._away = self.followed = False

    def _look(self, number: int) -> None:
        application, loop = self._application, self._loop
        if number != self._number or not application.alive or application.pauses.lasts:
            return
        now_us = self._clock.now_us
        sure_until_us = loop.sure_until_us(now_us) if loop.keeps_up(now_us) else 0
        if sure_until_us and loop.longest_interval_us <= 2 * _SHORT_US:
            if sure_until_us > 0:
                self._clock.at(sure_until_us, self._look, number)
            self.followed = False
            return
        self.followed = True
        poll_us = loop.poll_after_us(now_us)
        if poll_us - now_us > _SHORT_US:
            self._away = True
            application.wire.polling.leave()
        self._clock.at(poll_us, self._poll, number)

    def _poll(self, number: int) -> None:
        if number == self._number and self._application.alive and not self._application.pauses.lasts:
            self._come_back()
            self._clock.after(_INSIDE_US, self._look, number)

    def _come_back(self) -> None:
        if self._away:
            self._away = False
            self._application.wire.polling.enter()
