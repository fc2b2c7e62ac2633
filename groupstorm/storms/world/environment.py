"""The environment of all processes of a run: time, broker, network, topics, records and trace."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from groupstorm.assignors.leader import LeaderMemory
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.profiles import LATENESS
from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.consumer.group import ConsumerGroup
from groupstorm.coordinator.errors import NO_ERROR
from groupstorm.coordinator.messages import JoinGroup, OffsetCommit, OffsetCommitResponse, Response, SyncGroup
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.storms.checks.commits import Appends
from groupstorm.storms.checks.invariants import InvariantChecks, longest_silence_us
from groupstorm.storms.checks.settling import Rounds
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.records.positions import Records, caught_up, names
from groupstorm.storms.runs.steps_of_run import ConsumerProcess
from groupstorm.storms.scenario.consistency import is_shared
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.member_rules import SlowRecordList
from groupstorm.storms.scenario.setting_names import CLASSIC, CONSUMER, SHARE
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import COORDINATOR_FAILOVER, Phases
from groupstorm.storms.scenario.topics import rates_of, topic_partitions
from groupstorm.storms.share.checks import ShareChecks
from groupstorm.storms.world.broker import GROUP, TraceBuffer, VirtualBroker, first_error
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.connection import Network
from groupstorm.storms.world.disturbances import ConnectionFaults, DisturbedProcess
from groupstorm.storms.world.periodic_requests.schedule import DrawnSums, ProcessTimer, timer_sums
from groupstorm.storms.world.periodic_requests.series import RestingMembers
from groupstorm.storms.world.record_times import SlowRecordTimes
from groupstorm.storms.world.topics import Topics
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.group_states import GroupState
from groupstorm.trace.rows import TraceSink

#: The states of consumer and streams groups have these names, too.
_SETTLED_STATES: frozenset[str] = frozenset({GroupState.STABLE, GroupState.EMPTY})


class MemberProcess(DisturbedProcess, ConsumerProcess, Protocol):
    """One incarnation of a process that is a member of the group."""

    faults: ConnectionFaults

    def metadata_may_have_changed(self) -> None: ...

    def fetches_unknown_partitions(self) -> None:
        """The process owns partitions that do not exist any more."""
        ...


class Members:
    """``by_name`` are the processes that run; a later incarnation takes a name over from an earlier one."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.by_name: dict[str, MemberProcess] = {}

    def add(self, process: MemberProcess) -> None:
        self.by_name[process.name] = process

    def remove(self, process: MemberProcess) -> None:
        """The process is gone; its name may belong to a later one by now."""
        if self.by_name.get(process.name) is process:
            del self.by_name[process.name]

    def committed(self, partitions: tuple[TopicPartition, ...]) -> tuple[int, ...]:
        """The group's committed offsets, background commits included; -1 if there is none."""
        holders, committed = self._records.holders, self._records.committed
        for partition in partitions:
            if partition in holders:
                for work in holders[partition]:
                    holder = self.by_name.get(work.owner)
                    if holder is not None:
                        holder.periodic_requests.settle_commits()
        return tuple([committed.get(one, -1) for one in partitions])

    def caught_up(self, partitions: tuple[TopicPartition, ...], now_us: int) -> bool:
        """Whether all records of these partitions have been processed."""
        return caught_up(
            self._records, [process.work for process in self.by_name.values()], partitions, now_us
        )

    def settled_in(self, group: ClassicGroup | ConsumerGroup | StreamsGroup | None) -> bool:
        """Whether the group is Stable or Empty, made of exactly the living, with nothing under way."""
        living = [process for process in self.by_name.values() if process.started]
        if group is None:
            return not living
        if group.state not in _SETTLED_STATES or set(group.members.keys()) != {
            process.membership.generation.member_id for process in living
        }:
            return False
        return all(process.settled for process in living)

    def has(self, name: str, member_id: str) -> bool:
        """Whether the process of this name is the member of this id."""
        process = self.by_name.get(name)
        return process is not None and process.membership.generation.member_id == member_id

    @property
    def unanswered(self) -> Sequence[str]:
        """Names of the processes whose JoinGroup or SyncGroup is parked; other requests wait for a write."""
        parked = {process.name: process.connection.parked for process in self.by_name.values()}
        return [
            name
            for name, request in parked.items()
            if request is not None and isinstance(request.request, JoinGroup | SyncGroup)
        ]


def broker_assigns(settings: Settings) -> bool:
    """Whether any member is of a group whose broker assigns, at the start or later."""
    return any(own.choice("group.protocol") != CLASSIC for own in settings.of_profiles())


def is_mixed(settings: Settings) -> bool:
    """Whether members of both protocols may meet."""
    return len({own.choice("group.protocol") for own in settings.of_profiles()}) > 1


#: How often members of these groups send heartbeats whose client waits for the answer to the one before.
_WAITING: Final = {
    CONSUMER: "group.consumer.heartbeat.interval.ms",
    SHARE: "group.share.heartbeat.interval.ms",
}


def heartbeats_wait(settings: Settings) -> bool:
    """Whether a heartbeat of a consumer or share group may have to wait for the answer to the one before: it
    leaves retry.backoff.ms after that at the earliest, also if all is well
    (RequestState.onSuccessfulAttempt)."""
    round_trip_ms = 2 * settings.distribution("net_latency_ms").largest_us // 1000 + 1
    return any(
        round_trip_ms + own.integer("retry.backoff.ms") > settings.integer(_WAITING[protocol])
        for own in settings.of_profiles()
        if (protocol := own.choice("group.protocol")) in _WAITING
    )


class AssignorWork:
    """A context in which the leader's assignor runs: it counts the runs and their CPU nanoseconds.

    ``failure`` is the first failure in full, for the assignor's author; the trace has its kind alone.
    """

    def __init__(self) -> None:
        self.assignments = 0
        self.spent_ns = 0
        self.failure: str | None = None
        self._begun_ns = 0

    def __enter__(self) -> None:
        self._begun_ns = time.process_time_ns()

    def __exit__(self, *_: object) -> None:
        self.spent_ns += time.process_time_ns() - self._begun_ns
        self.assignments += 1

    def measured(self) -> dict[str, int | float]:
        """For measured.json."""
        return {"assignments": self.assignments, "assignor_cpu_ms": round(self.spent_ns / 1e6, 3)}

    def failed(self, error: str, message: str) -> None:
        """The assignor has failed; as in Kafka, the leader's process ends."""
        self.failure = self.failure or f"{error}: {message}"


class Environment:
    """The parts of a run, each built once and wired to the ones below it.

    ``exact``: heartbeats and background commits one by one (the oracle). ``work`` adds up what the assignors
    cost.
    """

    def __init__(
        self,
        scenario: ResolvedScenario,
        sink: TraceSink,
        exact: bool = False,
        work: AssignorWork | None = None,
    ) -> None:
        settings = scenario.settings
        self.scenario = scenario
        self.settings = settings
        #: The release of processes that start now.
        self.release = 0
        self.seed = scenario.seed
        self.phases = Phases(settings, scenario.steps, scenario.seed)
        self.group = GROUP
        self.exact = exact
        #: In a group of both protocols, every heartbeat may bring another member further. Heartbeats that
        #: wait do not keep their interval.
        self.sends_heartbeats = exact or is_mixed(settings) or heartbeats_wait(settings)
        self.clock = Clock()
        latency = settings.distribution("net_latency_ms")
        silence_us = longest_silence_us(settings, scenario.steps)
        self.invariants = InvariantChecks(
            settings.flag("joins"),
            silence_us,
            joins_before_v9=self._joins_before_v9,
            appends=Appends(settings.integer("append_latency_ms"), scenario.steps),
            consumer_groups=broker_assigns(settings),
            figures_from_us=scenario.figures_from_ms * 1000,
            sees_commits=True,
        )
        #: The checks of the run's rows: the rows of share groups are others.
        self.checks = (
            ShareChecks(settings.integer("group.share.delivery.count.limit"))
            if is_shared(settings)
            else self.invariants
        )
        self.trace = TraceBuffer(self.clock, sink, self.checks)
        topics, pattern = topic_partitions(settings), settings.optional_text("topic_pattern")
        follows = topics.__contains__ if pattern is None else lambda name: bool(re.fullmatch(pattern, name))
        self.topics = Topics(topics, follows)
        self.records = Records(RecordLogs(lambda tp: rates_of(settings, tp.topic, tp.partition)))
        slow = settings.of_type("slow_records", SlowRecordList)
        self.slow_records = SlowRecordTimes(slow, self.records.logs) if slow.records else None
        self.members = Members(self.records)
        self.resting = RestingMembers()
        self.broker = VirtualBroker(
            settings,
            scenario.seed,
            self.clock,
            self.trace,
            self._group_changed,
            self.resting.wake_all,
            any(step.do == COORDINATOR_FAILOVER for step in scenario.steps),
        )
        self.broker.on_commit = self._commit_arrives
        self.network = Network(self.clock, self.broker, latency, scenario.seed)
        self._timers: dict[tuple[str, str], DrawnSums | None] = {}
        self.broker_assigns = broker_assigns(settings)
        self.topics_changed(self.topics.now)
        self.assignor_work = work or AssignorWork()
        self.leader_memory = LeaderMemory()
        self.rounds = Rounds()

    def in_group(self, name: str) -> bool:
        """Whether the coordinator has the process of this name."""
        group, process = self.broker.group, self.members.by_name.get(name)
        if group is None or process is None:
            return False
        return process.membership.generation.member_id in group.members

    def topics_changed(self, changed: Mapping[str, int], removed: Sequence[str] = ()) -> None:
        """The coordinator knows topics only if it assigns partitions itself."""
        if self.broker_assigns:
            self.broker.topics_changed(changed, removed)
            self.resting.wake_heartbeats()

    def _commit_arrives(
        self, request: OffsetCommit, receive: Callable[[Response], None]
    ) -> Callable[[Response], None]:
        """It counts if the coordinator accepts it, whether the client learns of that or not. Let the checks
        see it, behind all rows so far, and its answer."""
        seen = _SeenCommit(self.invariants, request)
        self.trace.between_events(seen.arrives)
        return partial(self._commit_answered, seen, receive)

    def _commit_answered(
        self, seen: _SeenCommit, receive: Callable[[Response], None], response: Response
    ) -> None:
        if isinstance(response, OffsetCommitResponse) and first_error(response) is NO_ERROR:
            self.records.commit(seen.positions)
            self.trace.between_events(seen.accepted)
        receive(response)

    def heartbeat_timer(self, own: Settings, config: ConsumerConfig, incarnation: int) -> ProcessTimer:
        """The timer of a process. ``own``: the settings of its member."""
        lateness = own.distribution(LATENESS)
        kind = (config.profile.name, repr(lateness.as_written))
        if kind not in self._timers:
            self._timers[kind] = timer_sums(config.profile, lateness, self.network.latency)
        return ProcessTimer(self._timers[kind], self.seed, config.client_id, incarnation)

    def _joins_before_v9(self, name: str) -> bool:
        """Whether the client of a process joins with JoinGroup below version 9."""
        member = self.members.by_name.get(name)
        return member is not None and member.config.profile.join_group_version < 9

    def _group_changed(self, event: events.Event) -> None:
        self.rounds.group_changed(event, self.clock.now_us)
        self.resting.group_changed(event)


class _SeenCommit:
    """One commit as the checks see it: as it arrives, and once more if the coordinator accepts it."""

    __slots__ = ("_accept", "_invariants", "_request", "positions")

    def __init__(self, invariants: InvariantChecks, request: OffsetCommit) -> None:
        self._invariants = invariants
        self._request = request
        self._accept: Callable[[], None] | None = None
        self.positions = {
            TopicPartition(topic, number): committed.offset
            for topic, offsets in request.offsets.items()
            for number, committed in offsets.items()
        }

    def arrives(self) -> None:
        request = self._request
        positions = dict(zip(names(self.positions), self.positions.values(), strict=True))
        self._accept = self._invariants.commit_arrives(request.member_id, request.generation, positions)

    def accepted(self) -> None:
        if self._accept is not None:
            self._accept()
