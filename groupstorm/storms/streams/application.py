"""A Kafka Streams application in virtual time, which its threads share: tasks, state, traffic, leader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import NO_REBALANCE_MS, AssignorError, TaskId
from groupstorm.clients.streams.state import StateDirectory
from groupstorm.clients.streams.tasks import TaskManager
from groupstorm.clients.streams.topology import Topology
from groupstorm.figures.table import ALL_RUN
from groupstorm.history.tasks import STABLE
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import HELD
from groupstorm.storms.records.positions import Work
from groupstorm.storms.scenario.topics import mean_rate
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.member_settings import assignor_config, racks_of, replicas_of, topology
from groupstorm.trace.events import streams as events
from groupstorm.trace.events.scenario import TrafficCounted
from groupstorm.trace.schema import Source

INPUT, CHANGELOG, RESTORE, STANDBY = "input", "changelog", "restore", "standby"
_KINDS = (INPUT, CHANGELOG, RESTORE, STANDBY)


class Traffic:
    """Counts the bytes of records that are read and written, within a rack and between racks.

    ``racks``: per partition the racks of its replicas, the leader's first; empty if none are known.
    """

    def __init__(
        self, racks: Mapping[TopicPartition, tuple[str, ...]], record_bytes: int, from_follower: bool
    ) -> None:
        self._racks = racks
        self._record_bytes = record_bytes
        self._from_follower = from_follower
        self._all: Counter[str] = Counter()
        self._crossing: Counter[str] = Counter()

    def read(self, cause: str, partition: TopicPartition, rack: str | None, records: int) -> None:
        """Read from the leader, or from a replica in the reader's rack if that is allowed (KIP-392)."""
        near = self._racks.get(partition, ())
        self._count(cause, records, rack not in (near if self._from_follower else near[:1]))

    def write(self, cause: str, partition: TopicPartition, rack: str | None, records: int) -> None:
        """Write to the leader. Replication between brokers is not counted."""
        self._count(cause, records, rack not in self._racks.get(partition, ())[:1])

    def _count(self, cause: str, records: int, crosses: bool) -> None:
        read = records * self._record_bytes
        self._all[cause] += read
        if crosses:
            self._crossing[cause] += read

    def sums(self) -> Iterator[tuple[str, int, int]]:
        """The bytes of each cause, and those that went between racks; none if there are no racks."""
        for cause in _KINDS if self._racks else ():
            yield cause, self._all[cause], self._crossing[cause]


MEGABYTE = 1_000_000

FORECAST_US = 60_000_000
"""Processing is forecast so far ahead; beyond that it is taken to be as fast as records arrive."""

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_MEMBER: Final = Source.MEMBER


class ApplicationThread(Protocol):
    """A thread of an instance, as the application sees it."""

    tasks: TaskManager

    @property
    def alive(self) -> bool: ...

    def check_progress(self) -> None:
        """Restorations and standbys may have come to their end."""
        ...


class ApplicationInstance(Protocol):
    """An instance of the application."""

    name: str
    directory: StateDirectory

    @property
    def threads(self) -> Sequence[ApplicationThread]: ...


class StreamsApplication:
    """``instances`` are those that run, by name. ``following_up`` are the schedules of the threads that will
    ask for another rebalance by themselves."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.settings = settings = environment.settings
        self.clock = environment.clock
        self.group = environment.group
        replicas = replicas_of(settings, environment.seed)
        self.topology = topology(settings, replicas)
        self.config = assignor_config(settings)
        self.record_bytes = settings.integer("record_bytes")
        self.restore_rate = max(1, settings.integer("restore_mb_s") * MEGABYTE // self.record_bytes)
        self.follow_records = mean_rate(settings) * settings.integer("standby_lag_ms") // 1000
        near_zero = self.config.near_zero_gap
        #: The gap at which threads that watch their standbys ask for another rebalance (KIP-441's draft).
        self.near_zero = self.follow_records if near_zero is None else near_zero
        self.first_records = settings.integer("state_bytes") // self.record_bytes
        self.changelogs = [
            tuple(TopicPartition(*part[:2]) for part in task.changelogs) for task in self.topology.tasks
        ]
        every = [part for parts in (*self.topology.inputs, *self.changelogs) for part in parts]
        self.traffic = Traffic(
            racks_of(replicas, every), self.record_bytes, settings.flag("fetch_from_follower")
        )
        self.invariants = StreamsInvariantChecks(environment.invariants, self.topology, environment.in_group)
        self.instances: Mapping[str, ApplicationInstance] = {}
        self.following_up: set[object] = set()
        #: The kind of assignment that the last leader made.
        self.last_outcome = STABLE
        # changelogs are as old as the state in them
        environment.topics_changed(Counter(part.topic for parts in self.changelogs for part in parts))
        self._runs: dict[tuple[int, str], tuple[int, ...]] = {}

    def emit(self, event: events.Event) -> None:
        self.environment.trace.emit(_MEMBER, event)

    # -- changelogs ------------------------------------------------------------------------------

    def changelog_end(self, task: int, time_us: int) -> int:
        """Records in a task's changelog: the first ones, and one for each that was processed."""
        records, inputs = self.environment.records, self.topology.inputs[task]
        near_us = min(time_us, self.clock.now_us + FORECAST_US)
        reached = self.first_records
        for part in inputs:
            reached += records.reached(part, near_us)
            if near_us < time_us:
                reached += records.logs.end(part, time_us) - records.logs.end(part, near_us)
        return reached

    def processing_changed(self, tasks: Sequence[int]) -> None:
        """A thread has begun or ceased to process these tasks: the standbys that follow them check anew."""
        changed = set(tasks)
        for instance in self.instances.values():
            for thread in instance.threads:
                if thread.alive and not changed.isdisjoint(thread.tasks.standbys):
                    thread.check_progress()

    # -- the leader ------------------------------------------------------------------------------

    def as_leader(self, process: UUID, version: int) -> Application:
        """The knowledge of a generation's leader now: end offsets of all changelogs included."""
        now_us = self.clock.now_us
        ends = {
            task.id: self.changelog_end(number, now_us)
            for number, task in enumerate(self.topology.tasks)
            if task.stateful
        }
        return Application(
            self.topology.tasks,
            self.settings.choice("task.assignor"),
            self.config,
            process,
            ends,
            self.settings.flag("watch_list"),
            version,
        )

    def assigned(self, leader: str, generation: int, found: Rebalance) -> None:
        """The leader has decided."""
        names = {instance.directory.process: instance.name for instance in self.instances.values()}
        cause = self.last_outcome = outcome(found)
        self.emit(events.TasksPlaced(self.group, leader, generation, len(found.warmups), cause))
        for task, process in found.warmups:
            self.emit(events.WarmUpPlaced(self.group, names.get(process, str(process)), str(task)))
        self.invariants.assigned(found)

    # -- running tasks and their traffic ---------------------------------------------------------

    @property
    def all_tasks_run(self) -> bool:
        return len(self._runs) >= len(self.topology.tasks)

    def task_runs(self, task: int, thread: str, work: Work) -> None:
        """The thread begins to process a task's input; ``work`` has its positions."""
        self.invariants.task_runs(task, thread)
        now_us = self.clock.now_us
        self._runs[task, thread] = tuple(work.position(part, now_us) for part in self.topology.inputs[task])

    def task_stops(self, task: int, thread: str, work: Work, rack: str | None) -> None:
        """Count what the thread has read and written for a task since the task ran."""
        self.invariants.task_stops(task, thread)
        now_us = self.clock.now_us
        processed = 0
        starts = self._runs.pop((task, thread))
        for part, start in zip(self.topology.inputs[task], starts, strict=True):
            records = work.position(part, now_us) - start
            self.traffic.read(INPUT, part, rack, records)
            processed += records
        for part in self.changelogs[task]:
            self.traffic.write(CHANGELOG, part, rack, processed)

    def changelog_read(self, task: int, active: bool, records: int, rack: str | None) -> None:
        """Count what a restoration or a standby has read."""
        for part in self.changelogs[task]:
            self.traffic.read(RESTORE if active else STANDBY, part, rack, records)

    def emit_traffic(self) -> None:
        """Emit the sums of the run."""
        price = round(self.settings.decimal("usd_per_gb_each_way") * 2 * MEGABYTE)
        for cause, read, crossing in self.traffic.sums():
            self.environment.trace.emit(
                Source.WORLD, TrafficCounted(self.group, cause, read, crossing, price)
            )


ONE_ACTIVE = "one_active_per_task"
APART = "no_standby_beside_its_active"
FOLLOW_UPS = "requested_rebalances_happen"

STREAMS_INVARIANTS = (ONE_ACTIVE, APART, ALL_RUN, FOLLOW_UPS)


def outcome(found: Rebalance) -> str:
    """The kind of assignment that a leader has made: the ``cause`` of `events.TasksPlaced`."""
    infos = [own.info for own in found.assignments.values()]
    errors = {info.error_code for info in infos} - {AssignorError.NONE, AssignorError.IMBALANCED_ASSIGNMENT}
    if errors:
        return AssignorError(min(errors)).name
    if found.stable:
        return "stable"
    if any(info.next_rebalance_ms == 0 for info in infos):
        return "follow-up"
    if any(info.error_code == AssignorError.IMBALANCED_ASSIGNMENT for info in infos):
        return "imbalanced"
    return "probing" if any(info.next_rebalance_ms < NO_REBALANCE_MS for info in infos) else "version-probing"


class StreamsInvariantChecks:
    """Adds its verdicts to those of ``checks``. ``in_group``: whether the coordinator has a thread: one that
    it has removed may not know it yet, and works on."""

    def __init__(self, checks: InvariantChecks, topology: Topology, in_group: Callable[[str], bool]) -> None:
        self._checks = checks
        self._topology = topology
        self._in_group = in_group
        self._running: dict[int, list[str]] = {}
        self._asked: Counter[str] = Counter()
        checks.verdicts.update(dict.fromkeys(STREAMS_INVARIANTS, HELD))

    def task_runs(self, task: int, thread: str) -> None:
        running = self._running.setdefault(task, [])
        running.append(thread)
        if len(running) > 1 and len(members := sorted(filter(self._in_group, running))) > 1:
            name = self._topology.names[task]
            self._checks.violated(ONE_ACTIVE, f"{name} runs on {' and on '.join(members)}")

    def task_stops(self, task: int, thread: str) -> None:
        self._running[task].remove(thread)

    def assigned(self, found: Rebalance) -> None:
        """A leader has decided."""
        self._asked.clear()
        processes = found.processes
        active: dict[TaskId, UUID] = {}
        for member, own in found.assignments.items():
            if own.info.active:
                active.update(dict.fromkeys(own.info.active, processes[member]))
        for member, own in found.assignments.items():
            for task in own.info.standby:
                if active.get(task) == processes[member]:
                    self._checks.violated(APART, f"{task} is active and standby on one instance")

    def held_at_end(self, active: Iterable[int], standby: Iterable[int]) -> None:
        """The tasks of one instance when the run is over, whoever has placed them."""
        for task in sorted({*active} & {*standby}):
            name = self._topology.names[task]
            self._checks.violated(APART, f"{name} is active and standby on one instance")

    def asked(self, thread: str) -> None:
        """A thread asks for a rebalance."""
        self._asked[thread] += 1

    def gone(self, thread: str) -> None:
        self._asked.pop(thread, None)

    def finish(self, alive: bool) -> None:
        """``alive``: whether an instance is left to run tasks."""
        idle = [name for task, name in enumerate(self._topology.names) if not self._running.get(task)]
        if idle and alive:
            self._checks.violated(ALL_RUN, f"{len(idle)} tasks do not run at the end, {idle[0]} among them")
        if self._asked:
            names = ", ".join(sorted(self._asked))
            self._checks.violated(FOLLOW_UPS, f"no rebalance came that was asked for by {names}")
