"""One process in virtual time: what members of both group protocols share.

A process is one incarnation: when it stops or crashes, a later one under the same name is another
object. What takes time is scheduled on the clock with the number of the step that waits for it: a result
that comes too late is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import OffsetCommitResponse, Response
from groupstorm.storms.records.logs import rates_at
from groupstorm.storms.records.positions import ProcessingRates, Work, commit_request, names
from groupstorm.storms.scenario.consistency import commits_of
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.application_polls import ApplicationPolls
from groupstorm.storms.world.broker import first_error
from groupstorm.storms.world.clock import ClientClock
from groupstorm.storms.world.connection import VirtualConnection
from groupstorm.storms.world.disturbances import ConnectionFaults, GarbageCollections, Pauses
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.member_settings import poll_loop
from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.schedule import SHARES
from groupstorm.storms.world.periodic_requests.series import GroupMember
from groupstorm.storms.world.rebalance_callbacks import TAKES_TIME
from groupstorm.storms.world.record_times import ApplicationDraws
from groupstorm.storms.world.topics import ClientMetadata
from groupstorm.trace.events import member as events
from groupstorm.trace.schema import Source

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER

_DISCONNECTED: Final = Disconnected()
_THOUSAND_SECONDS_US: Final = 1_000_000_000

Member = TypeVar("Member", bound=GroupMember)


class VirtualProcess(ABC, Generic[Member]):
    """One incarnation of a process whose consumer is a member of the group.

    ``settings`` are its own.
    """

    __slots__ = (
        "_collections",
        "_environment",
        "_incarnation",
        "_metadata",
        "_trace",
        "alive",
        "client_clock",
        "clock",
        "commits",
        "config",
        "connection",
        "draws",
        "faults",
        "index",
        "membership",
        "name",
        "on_exit",
        "pauses",
        "periodic_requests",
        "polls",
        "rates",
        "settings",
        "started",
        "step",
        "waits_for_poll",
        "work",
    )

    membership: Member

    def __init__(
        self,
        environment: Environment,
        index: int,
        incarnation: int,
        config: ConsumerConfig,
        settings: Settings,
    ) -> None:
        self._environment = environment
        self._incarnation = incarnation
        self._trace = environment.trace
        self.clock = environment.clock
        self.index = index
        self.name = config.client_id
        self.config = config
        self.settings = settings
        self.commits = commits_of(settings.of_member(index))
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        #: The operation that is under way: a result for an earlier one comes too late.
        self.step = 0
        self.waits_for_poll = False
        self.client_clock = ClientClock(settings.of_member(index).integer("clock_drift_ppm"))
        self._metadata = ClientMetadata(
            self.clock,
            environment.topics,
            self.client_clock.timer_us(config.metadata_max_age_ms),
            self._metadata_refreshed,
        )
        records = environment.records
        loop = poll_loop(
            settings,
            records.logs,
            environment.seed,
            index,
            self.name,
            incarnation,
            steps=environment.exact,
            slow=environment.slow_records,
        )
        self.work = Work(records, self.name, loop, settings.of_member(index).choice("auto.offset.reset"))
        self.rates = ProcessingRates(self.clock, loop, self._processing_changed)
        self.connection = VirtualConnection(
            environment.network, index, self.name, incarnation, self.completed, self.client_clock
        )
        self.draws = ApplicationDraws(self.clock, environment.seed, self.name, incarnation)
        self.membership = self._new_member()
        self.faults = ConnectionFaults(self)
        self.periodic_requests = self._new_requests()
        self.pauses = Pauses(self.clock, self)
        stream = Stream(environment.seed, "gc", self.name, incarnation)
        self.polls = ApplicationPolls(self.clock, self)
        self._collections = GarbageCollections(self, settings, stream)

    # -- what each protocol has of its own -------------------------------------------------------

    @abstractmethod
    def _new_member(self) -> Member: ...

    @abstractmethod
    def _new_requests(self) -> PeriodicRequests: ...

    @abstractmethod
    def _run(self) -> None:
        """The first poll()."""

    @abstractmethod
    def stop(self) -> None:
        """The application answers SIGTERM: close() begins."""

    @abstractmethod
    def _go_on(self, result: Any) -> None:
        """The result has come for which the process waited."""

    @abstractmethod
    def heartbeat_answered(self, error: Error, sent: Generation) -> None:
        """A heartbeat of the classic protocol was answered that had been sent in that generation."""

    @abstractmethod
    def polled(self) -> None:
        """The application calls poll(), in exact mode."""

    @abstractmethod
    def _topics_refreshed(self) -> None:
        """The client has other topic metadata."""

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """The application calls poll() for the first time."""
        config = self.config
        self.started = True
        max_age_us = self.client_clock.timer_us(config.metadata_max_age_ms)
        phases = self._environment.phases
        self._metadata.start(phases.metadata_age_us(self.name, self.clock.now_us, max_age_us))
        self._collections.start()
        self.emit(events.MemberStarted(config.group_id, self.name, config.group_instance_id, config.topics))
        self._run()

    def crash(self) -> None:
        """SIGKILL or node loss: the process sends and receives nothing any more."""
        if not self.alive:
            return
        now_us = self.clock.now_us
        membership = self.membership
        partitions = self.work.partitions
        self.periodic_requests.stop()
        self.periodic_requests.settle_commits()
        self.rates.stop()
        positions = self.work.drop(partitions, now_us)
        if self.started:
            self.emit(
                events.MemberCrashed(
                    self.config.group_id,
                    self.name,
                    membership.generation.member_id,
                    membership.generation.id,
                    names(partitions),
                    positions,
                    self._environment.members.committed(partitions),
                )
            )
        self._exit()

    def disconnect(self, duration_us: int) -> None:
        """Cut the process off from the broker; it goes on with the partitions that it owns."""
        if not self.pauses.lasts:
            self.faults.lose_coordinator(duration_us)

    def metadata_may_have_changed(self) -> None:
        """Topics changed: the client sees it at its next metadata refresh."""
        if self.alive:
            self._metadata.topics_changed()

    def fetches_unknown_partitions(self) -> None:
        """A fetch is answered with UNKNOWN_TOPIC_OR_PARTITION: the client refreshes its metadata."""
        if self.alive:
            self.clock.after(self.client_clock.timer_us(self.config.retry_backoff_ms), self._refresh_metadata)

    def _refresh_metadata(self) -> None:
        self._metadata.refresh()
        self._metadata_refreshed()

    # -- what takes time -------------------------------------------------------------------------

    def later(self, delay_us: int, result: Any = None) -> Any:
        """``result`` after a while, or at once if it takes no time."""
        if not delay_us:
            return result
        self.clock.after(delay_us, self.completed, self.step, result)
        return TAKES_TIME

    def completed(self, step: int, result: Any) -> None:
        """The result has come for which the membership has waited since ``step``."""
        if step != self.step or not self.alive:
            return
        paused_until_us = self.pauses.paused_until_us
        if self.clock.now_us < paused_until_us:
            self.clock.at(paused_until_us, self.completed, step, result)
        else:
            self._go_on(result)

    def work_share(self) -> tuple[int, int]:
        """Return the application's share of time at work, in `SHARES`, and the microseconds between polls."""
        now_us, loop, logs = self.clock.now_us, self.work.loop, self._environment.records.logs
        capacity = loop.capacity
        rate = sum(rates_at(logs.curves(self.membership.owned), now_us))
        share = (2 * SHARES * rate + capacity) // (2 * capacity)
        record_us = _THOUSAND_SECONDS_US // capacity
        if share >= SHARES:
            return SHARES, record_us * self.settings.of_member(self.index).integer("max.poll.records")
        return share, max(record_us, loop.longest_interval_us * share // SHARES)

    # -- commits ---------------------------------------------------------------------------------

    def commit(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        then: Callable[[Error | Disconnected], None],
    ) -> None:
        """Commit as a member of the generation ``sent``; ``then`` gets the error of the response, or
        `Disconnected`."""
        self.periodic_requests.settle_commits()  # this commit replaces those before
        self.connection.send(
            commit_request(self.config, positions, sent),
            self.config.request_timeout_ms,
            partial(self._commit_answered, positions, sent, then),
        )

    def _commit_answered(
        self,
        positions: Mapping[TopicPartition, int],
        sent: Generation,
        then: Callable[[Error | Disconnected], None],
        response: Response | Disconnected,
    ) -> None:
        if not isinstance(response, OffsetCommitResponse):
            then(_DISCONNECTED)
            return
        error = first_error(response)
        deleted = self._environment.topics.deleted
        if error is NO_ERROR and deleted and any(partition.topic in deleted for partition in positions):
            # the broker knows of deleted topics before the coordinator sees the request (KafkaApis)
            error = Error.UNKNOWN_TOPIC_OR_PARTITION
        self.membership.commit_answered(error, sent)
        then(error)

    # -- what happens to the process -------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether it has joined and nothing is under way."""
        return (
            self.waits_for_poll
            and self.membership.is_settled
            and not self.pauses.lasts
            and self.connection.passes
            and self.work.partitions == self.membership.owned  # else it still looks up where to start
        )

    def reachable(self) -> bool:
        """Whether it can send heartbeats now."""
        return self.receives() and self.clock.now_us >= self.connection.no_requests_until_us

    def receives(self) -> bool:
        """Whether it can receive a response now."""
        now_us = self.clock.now_us
        return (
            self.alive and now_us >= self.connection.broken_until_us and now_us >= self.pauses.paused_until_us
        )

    def watch_polls(self) -> None:
        """The application's next poll() comes at another time."""
        self.polls.watch()

    def poll_deadline_us(self, polled_us: int) -> int:
        """When max.poll.interval.ms has passed since a poll() at ``polled_us``, as the client counts it."""
        return polled_us + self.client_clock.timer_us(self.config.max_poll_interval_ms)

    def nudge(self) -> None:
        """A rejoin may have become necessary: the application notices at its next poll()."""
        self.polls.nudge()

    def _metadata_refreshed(self) -> None:
        if self.alive:
            self._topics_refreshed()
            self.nudge()

    def expected_result(self) -> Callable[[Any], None]:
        """Takes the result of the operation that is under way, some time later."""
        return partial(self.completed, self.step)

    def _exit(self) -> None:
        self.alive = False
        self.rates.stop()
        self.step += 1
        self._environment.members.remove(self)
        if self.on_exit is not None:
            self.on_exit()

    def _processing_changed(
        self, partitions: tuple[str, ...], positions: tuple[int, ...], rates: tuple[int, ...]
    ) -> None:
        member_id = self.membership.generation.member_id
        self.emit(
            events.ProcessingRatesChanged(
                self.config.group_id, self.name, member_id, partitions, positions, rates
            )
        )

    def emit(self, event: events.Event) -> None:
        self._trace.emit(_MEMBER, event)
