"""The virtual world of a Kafka Streams application: hosts with state, changelogs that grow, racks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from groupstorm.assignors.streams.leader import Application, Rebalance
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.assignors.userdata.streams import LATEST_SUPPORTED_VERSION
from groupstorm.clients.streams import events
from groupstorm.clients.streams.directory import StateDirectory
from groupstorm.storms.assignor_work import AssignorWork
from groupstorm.storms.events import TrafficCounted
from groupstorm.storms.figures.tasks import STABLE
from groupstorm.storms.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.stage import Process
from groupstorm.storms.streams.application import Replicas, assignor_config, racks_of, topology
from groupstorm.storms.streams.checkers import StreamsCheckers, outcome
from groupstorm.storms.streams.instance import StreamsInstance
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.storms.streams.traffic import CHANGELOG, INPUT, RESTORE, STANDBY, Traffic
from groupstorm.storms.world import World
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.schema import Source

MEGABYTE = 1_000_000
_PROCESS_DRAWS = 4


class StreamsWorld(World):
    """``consumers`` are the threads, ``processes`` the instances.

    ``version``: of SubscriptionInfo, that instances know which start from now on.
    """

    def __init__(
        self,
        scenario: ResolvedScenario,
        sink: TraceSink,
        exact: bool = False,
        work: AssignorWork | None = None,
    ) -> None:
        super().__init__(scenario, (), sink, exact, work)
        settings = self.settings
        replicas = Replicas(settings, self.seed)
        self.topology = topology(settings, replicas)
        self.config = assignor_config(settings)
        self.version = settings.integer("metadata_version")
        self.record_bytes = settings.integer("record_bytes")
        self.restore_rate = max(1, settings.integer("restore_mb_s") * MEGABYTE // self.record_bytes)
        self.follow_records = self.records.record_rate * settings.integer("standby_lag_ms") // 1000
        near_zero = self.config.near_zero_gap
        #: The gap at which those who watch their standbys ask for another rebalance (KIP-441's draft).
        self.near_zero = self.follow_records if near_zero is None else near_zero
        self.first_records = settings.integer("state_bytes") // self.record_bytes
        self.changelogs = [
            tuple(TopicPartition(*part[:2]) for part in task.changelogs) for task in self.topology.tasks
        ]
        every = [part for parts in (*self.topology.inputs, *self.changelogs) for part in parts]
        self.traffic = Traffic(
            racks_of(replicas, every), self.record_bytes, settings.flag("fetch_from_follower")
        )
        self.streams_checkers = StreamsCheckers(self.checkers, self.topology)
        self._instances: dict[str, StreamsInstance] = {}
        self._hosts: dict[str, StateDirectory] = {}
        self._hosts_made = 0
        self._process_ids = Stream(self.seed, "process-ids")
        #: Threads that will ask for another rebalance.
        self.following_up: set[StreamThread] = set()
        self._last_outcome = STABLE
        self._runs: dict[tuple[int, str], tuple[int, ...]] = {}

    # -- instances -------------------------------------------------------------------------------

    @property
    def processes(self) -> Mapping[str, Process]:
        return self._instances

    @property
    def instances(self) -> Sequence[StreamsInstance]:
        return tuple(self._instances.values())

    def new_process(self, index: int, name: str) -> Process:
        """An instance under ``name``, with the state that an earlier one left on its host."""
        self._incarnations[name] += 1
        directory = self._hosts.get(name)
        if directory is None:
            directory = self._hosts[name] = self._new_host()
            if self._incarnations[name] == 1 and index < self.settings.integer("members"):
                self._furnish(directory)
        instance = StreamsInstance(self, index, name, self._incarnations[name], directory, self.version)
        self._instances[name] = instance
        for thread in instance.threads:
            self.consumers[thread.name] = thread
        return instance

    def _new_host(self) -> StateDirectory:
        self._hosts_made += 1
        process = 0
        for part in range(_PROCESS_DRAWS):
            draw = self._process_ids.at(self._hosts_made * _PROCESS_DRAWS + part)
            process = process << DRAW_BITS | draw
        return StateDirectory(UUID(int=process), self.settings.integer("state.cleanup.delay.ms") * 1000)

    def _furnish(self, directory: StateDirectory) -> None:
        """The host of a first instance, where the application has run before (`first_hosts_have_state`)."""
        if self.settings.flag("first_hosts_have_state"):
            for task, described in enumerate(self.topology.tasks):
                if described.stateful:
                    directory.keep(task, self.first_records, self.clock.now_us)

    def lose_host(self, name: str) -> None:
        """Its disk is gone: whoever comes back under this name has no state and another process id."""
        self._hosts.pop(name, None)

    def instance_gone(self, instance: StreamsInstance) -> None:
        if self._instances.get(instance.name) is instance:
            del self._instances[instance.name]

    def upgrade(self) -> None:
        """Instances that start from now on are of the newest release."""
        self.version = LATEST_SUPPORTED_VERSION

    # -- changelogs ------------------------------------------------------------------------------

    def changelog_end(self, task: int, time_us: int) -> int:
        """Records in a task's changelog: what was there, and one for each that was processed."""
        inputs = self.topology.inputs[task]
        return self.first_records + sum(self.records.reached(part, time_us) for part in inputs)

    def course_changed(self, tasks: Sequence[int]) -> None:
        """Somebody has begun or ceased to process these: who follows them looks anew."""
        changed = set(tasks)
        for instance in self._instances.values():
            for thread in instance.threads:
                if thread.alive and not changed.isdisjoint(thread.tasks.standbys):
                    thread.look()

    # -- the leader ------------------------------------------------------------------------------

    def as_leader(self, instance: StreamsInstance) -> Application:
        """What the leader of a generation knows now: end offsets of all changelogs included."""
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
            instance.directory.process,
            ends,
            self.settings.flag("watch_list"),
            instance.version,
        )

    def placed(self, leader: StreamThread, found: Rebalance) -> None:
        """The leader has decided."""
        names = {instance.directory.process: instance.name for instance in self._instances.values()}
        generation = leader.membership.generation.id
        cause = self._last_outcome = outcome(found)
        leader.tell(events.TasksPlaced(self.group, leader.name, generation, len(found.warmups), cause))
        for task, process in found.warmups:
            leader.tell(events.WarmUpPlaced(self.group, names.get(process, str(process)), str(task)))
        self.streams_checkers.placed(found)

    # -- what runs, what is read -----------------------------------------------------------------

    def task_runs(self, task: int, thread: StreamThread) -> None:
        self.streams_checkers.task_runs(task, thread.name)
        now_us = self.clock.now_us
        inputs = self.topology.inputs[task]
        self._runs[task, thread.name] = tuple(thread.work.position(part, now_us) for part in inputs)

    def task_stops(self, task: int, thread: StreamThread) -> None:
        """What it has read and written since it ran counts."""
        self.streams_checkers.task_stops(task, thread.name)
        now_us, rack = self.clock.now_us, thread.instance.rack
        processed = 0
        starts = self._runs.pop((task, thread.name))
        for part, start in zip(self.topology.inputs[task], starts, strict=True):
            records = thread.work.position(part, now_us) - start
            self.traffic.read(INPUT, part, rack, records)
            processed += records
        for part in self.changelogs[task]:
            self.traffic.write(CHANGELOG, part, rack, processed)

    def changelog_read(self, task: int, active: bool, records: int, rack: str | None) -> None:
        for part in self.changelogs[task]:
            self.traffic.read(RESTORE if active else STANDBY, part, rack, records)

    # -- the state of things ---------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """The group is, and every task runs, if there is anybody to run them."""
        if self._instances and len(self._runs) < len(self.topology.tasks):
            return False
        return super().settled

    def cease(self) -> bool:
        for instance in self.instances:
            for thread in instance.threads:
                thread.follow_ups.cease()
        return self._last_outcome != STABLE

    @property
    def follow_ups(self) -> bool:
        return bool(self.following_up)

    def finish(self) -> None:
        super().finish()
        self.streams_checkers.finish(alive=any(instance.started for instance in self.instances))
        for instance in self.instances:
            for thread in instance.threads:
                thread.end_of_run()
        price = round(self.settings.decimal("usd_per_gb_each_way") * 2 * MEGABYTE)
        for cause, read, crossing in self.traffic.sums():
            self.trace(Source.WORLD, TrafficCounted(self.group, cause, read, crossing, price))
