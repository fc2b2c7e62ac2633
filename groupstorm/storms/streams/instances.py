"""The processes of a scenario with a Kafka Streams application: instances, and the hosts that keep state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from groupstorm.assignors.userdata.streams import LATEST_SUPPORTED_VERSION
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.clients.streams.state import StateDirectory
from groupstorm.history.tasks import STABLE
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.runs.steps_of_run import Process
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.streams.application import StreamsApplication
from groupstorm.storms.streams.protocol_threads import ClassicThread, GroupThread
from groupstorm.storms.streams.thread import StreamThread
from groupstorm.storms.world.member_settings import client_tags, rack_name, rack_of, thread_config
from groupstorm.storms.world.world import Processes
from groupstorm.trace.events import streams as events


class StreamsInstance:
    """A process of the scenario. ``directory``: the state on its host; ``version``: its release.

    ``on_gone`` is called before ``on_exit``, which belongs to the scenario's steps.
    """

    def __init__(
        self,
        application: StreamsApplication,
        index: int,
        name: str,
        incarnation: int,
        directory: StateDirectory,
        version: int,
        on_gone: Callable[[StreamsInstance], None],
    ) -> None:
        self.index = index
        self.name = name
        self.directory = directory
        self.version = version
        self.settings = application.settings.release(application.environment.release)
        self.rack = rack_of(application.settings, index)
        self.tags = client_tags(application.settings, self.rack)
        self.alive = True
        self.started = False
        self.on_exit: Callable[[], None] | None = None
        self._application = application
        self._on_gone = on_gone
        self._cause = "failed"
        threads = range(1, application.settings.integer("num.stream.threads") + 1)
        self.threads: list[StreamThread] = [
            self._thread(f"{name}-StreamThread-{number}", incarnation) for number in threads
        ]

    def _thread(self, name: str, incarnation: int) -> StreamThread:
        application = self._application
        topics = tuple(application.environment.topics.at(application.clock.now_us))
        config = thread_config(self.settings, application.group, topics, name, self.rack)
        if config.group_protocol is GroupProtocol.STREAMS:
            return GroupThread(application, self, incarnation, config)
        return ClassicThread(application, self, incarnation, config)

    def start(self) -> None:
        """KafkaStreams.start()."""
        self.started = True
        self._application.emit(
            events.InstanceStarted(
                self._application.group, self.name, self.rack, len(self.threads), self.version
            )
        )
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """KafkaStreams.close(): every thread closes."""
        self._cause = "closed"
        for thread in self.threads:
            thread.stop()

    def crash(self) -> None:
        """SIGKILL."""
        self._cause = "crashed"
        for thread in self.threads:
            thread.crash()

    def state_released(self) -> None:
        """A thread has closed tasks: another one may be waiting for their state."""
        now_us = self._application.clock.now_us
        for thread in self.threads:
            if thread.alive and thread.tasks.waits_for_state:
                thread.tasks.try_locks(now_us)
                thread.check_progress()

    def thread_gone(self) -> None:
        """One of its threads has ended."""
        self.state_released()
        if self.alive and not any(thread.alive for thread in self.threads):
            self.alive = False
            if self.started:
                self._application.emit(events.InstanceGone(self._application.group, self.name, self._cause))
            self._on_gone(self)
            if self.on_exit is not None:
                self.on_exit()


_PROCESS_DRAWS = 4


class StreamsInstances(Processes[StreamsInstance]):
    """Every process is an instance. A name stands for a host: its state stays when the instance is gone."""

    def __init__(self, application: StreamsApplication) -> None:
        super().__init__(application.environment)
        self._application = application
        application.instances = self.running
        self._hosts: dict[str, StateDirectory] = {}
        self._hosts_made = 0
        self._process_ids = Stream(self._environment.seed, "process-ids")
        #: The version of SubscriptionInfo that instances know if they start now.
        self._version = application.settings.integer("metadata_version")

    def new(self, index: int, name: str) -> StreamsInstance:
        """An instance under ``name``, with the state that an earlier one left on its host."""
        incarnation = self._next_incarnation(name)
        if not self._application.settings.flag("state_outlasts_process"):
            self.lose_host(name)
        directory = self._hosts.get(name)
        if directory is None:
            directory = self._hosts[name] = self._new_host()
            settings = self._application.settings
            # a pod that takes the place of another one has a new name, and a new disk
            is_first = incarnation == 1 and name == settings.member_name(index, "instance")
            if is_first and index < settings.integer("members"):
                self._add_first_state(directory)
        instance = StreamsInstance(
            self._application, index, name, incarnation, directory, self._version, self._remove
        )
        self.running[name] = instance
        for thread in instance.threads:
            self._environment.members.add(thread.consumer)
        return instance

    def in_rack(self, rack: str) -> list[StreamsInstance]:
        return [instance for instance in self.running.values() if instance.rack == rack]

    # -- hosts -----------------------------------------------------------------------------------

    def _new_host(self) -> StateDirectory:
        self._hosts_made += 1
        process = 0
        for part in range(_PROCESS_DRAWS):
            draw = self._process_ids.at(self._hosts_made * _PROCESS_DRAWS + part)
            process = process << DRAW_BITS | draw
        cleanup_us = self._application.settings.integer("state.cleanup.delay.ms") * 1000
        return StateDirectory(UUID(int=process), cleanup_us)

    def _add_first_state(self, directory: StateDirectory) -> None:
        """Give the host of a first instance the state of a run before this one (`first_hosts_have_state`)."""
        application = self._application
        if application.settings.flag("first_hosts_have_state"):
            for task, described in enumerate(application.topology.tasks):
                if described.stateful:
                    directory.keep(task, application.first_records, self._environment.clock.now_us)

    def lose_host(self, name: str) -> None:
        """The host's disk is gone: the next instance of this name has no state and another process id."""
        self._hosts.pop(name, None)

    def upgrade(self) -> None:
        """Instances that start from now on are of the newest release."""
        self._version = LATEST_SUPPORTED_VERSION

    # -- the end of a run ------------------------------------------------------------------------

    @property
    def _threads(self) -> Iterator[StreamThread]:
        for instance in tuple(self.running.values()):
            yield from instance.threads

    @property
    def settled(self) -> bool:
        """Whether every task runs, if there is an instance to run it."""
        return not self.running or self._application.all_tasks_run

    @property
    def follow_ups(self) -> bool:
        return bool(self._application.following_up)

    def give_up_follow_ups(self) -> bool:
        """Threads ask for no more rebalances by themselves. Returns whether they did until now."""
        for thread in self._threads:
            thread.give_up_follow_ups()
        return self._application.last_outcome != STABLE

    def finish(self) -> None:
        """The run is over: check the tasks, count what was read and written so far."""
        application = self._application
        application.invariants.finish(any(instance.started for instance in self.running.values()))
        for instance in self.running.values():
            held = [thread.tasks for thread in instance.threads if thread.alive]
            application.invariants.held_at_end(
                (task for tasks in held for task in tasks.running),
                (task for tasks in held for task in tasks.standbys),
            )
        for thread in self._threads:
            thread.finish()
        application.emit_traffic()


class StreamsSteps:
    """Adds its steps to those of ``runner``, whose processes are instances."""

    def __init__(self, runner: StepRunner, instances: StreamsInstances) -> None:
        self._runner = runner
        self._instances = instances
        self._lost: dict[int, list[tuple[int, str]]] = {}
        runner.handlers |= {
            "lose-host": self._lose_host,
            "lose-zone": self._lose_zone,
            "restore-zone": self._restore_zone,
            "rolling-upgrade": self._rolling_upgrade,
        }

    def _lose(self, process: Process, do: str) -> None:
        self._runner.emit_step(do, process.name, "SIGKILL, and its disk is gone")
        process.crash()
        self._runner.ended.add(process.index)
        self._instances.lose_host(process.name)

    def _lose_host(self, step: Step) -> None:
        for process in self._runner.chosen(step):
            self._lose(process, step.do)

    def _lose_zone(self, step: Step) -> None:
        """Lose the hosts of all instances that run in the rack now; its brokers stay."""
        there = self._instances.in_rack(rack_name(step.rack))
        self._runner.emit_step(step.do, None, f"{len(there)} instances in {rack_name(step.rack)} are lost")
        self._lost[step.rack] = [(instance.index, instance.name) for instance in there]
        for instance in there:
            self._lose(instance, step.do)

    def _restore_zone(self, step: Step) -> None:
        lost = self._lost.pop(step.rack, [])
        self._runner.emit_step(
            step.do, None, f"{len(lost)} instances start in {rack_name(step.rack)}, without state"
        )
        for index, name in lost:
            delay_us = self._runner.delay_within_us(step.over_ms)
            self._runner.spawn(index, name, delay_us + self._runner.duration_us("start_ms"))

    def _rolling_upgrade(self, step: Step) -> None:
        self._instances.upgrade()
        self._runner.handlers["rolling-restart"](step)
