"""The world that hosts a run, virtual or real, and its processes, as the run's steps start and stop them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.settling import FinalState, Owner
from groupstorm.storms.records.positions import RecordRateRows, Records, Timetable
from groupstorm.storms.scenario.consistency import stopping_ms
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.setting_names import PROCESSES
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Phases
from groupstorm.storms.share.checks import ShareChecks
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source


class Pausable(Protocol):
    """The pauses of a process: one of the whole process, or one long batch."""

    def pause(self, duration_us: int) -> None: ...

    def busy(self, duration_us: int) -> None: ...


class Process(Protocol):
    """One incarnation of a process: a consumer, or an instance of a Kafka Streams application.

    ``index`` is its place in the group; ``on_exit`` is called when the process is gone.
    """

    index: int
    name: str
    alive: bool
    started: bool
    on_exit: Callable[[], None] | None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def crash(self) -> None: ...


class ConsumerProcess(Process, Protocol):
    """A consumer: a member of the group, which owns partitions."""

    @property
    def work(self) -> Owner: ...

    @property
    def pauses(self) -> Pausable: ...

    def disconnect(self, duration_us: int) -> None: ...


class StepHost(Protocol):
    """The world in which the steps of a scenario are taken."""

    scenario: ResolvedScenario
    settings: Settings
    seed: int
    group: str

    @property
    def clock(self) -> Timetable: ...

    @property
    def consumers(self) -> Mapping[str, ConsumerProcess]:
        """The members of the group by name."""

    @property
    def processes(self) -> Mapping[str, Process]:
        """The processes that steps start and stop: consumers, or instances that hold them as threads."""

    def new_process(self, index: int, name: str) -> Process: ...

    def use_release(self, number: int) -> None:
        """Processes that start from now on have the settings of this release."""

    def add_partitions(self, topic: str, count: int) -> None: ...

    def trace(self, source: Source, event: TracedEvent) -> None:
        """Emit an event that happens now."""

    @property
    def partitions(self) -> tuple[TopicPartition, ...]: ...

    def group_lags(self) -> list[int]:
        """The lag of every partition as an autoscaler sees it: from the committed offset to the log's end."""

    def committed_records(self) -> int:
        """Records that the group has committed, over all partitions."""


def member_names(name: str, each: int) -> list[str]:
    """The client ids of the ``each`` consumers of the process ``name``, numbered as Spring does."""
    return [name] if each == 1 else [f"{name}-{number}" for number in range(each)]


def consumers_of(host: StepHost, process: Process) -> list[ConsumerProcess]:
    """The consumer that the process is, those of a pod, or those of a Streams instance's threads."""
    each = host.settings.integer("members_per_pod")
    if each > 1:
        return [host.consumers[name] for name in member_names(process.name, each) if name in host.consumers]
    threads = f"{process.name}-StreamThread-"
    return [
        consumer
        for name, consumer in host.consumers.items()
        if name == process.name or name.startswith(threads)
    ]


def partitions_owned(host: StepHost, process: Process) -> int:
    """The number of partitions that the process owns."""
    return sum(len(consumer.work.partitions) for consumer in consumers_of(host, process))


class ScenarioHost(StepHost, FinalState, Protocol):
    """The world in which a scenario runs, with what its figures and its checks need."""

    records: Records
    rate_rows: RecordRateRows

    @property
    def invariants(self) -> InvariantChecks | ShareChecks: ...

    @property
    def requests(self) -> Mapping[tuple[str, str | None], int]:
        """(API, error) -> number of responses."""

    @property
    def follow_ups(self) -> bool:
        """Whether members that are at rest will ask for another rebalance by themselves."""

    def caught_up(self) -> bool:
        """Whether all records have been processed."""


#: The back-off of a container that fails again and again (kubelet, CrashLoopBackOff).
FIRST_BACKOFF_US = 10_000_000
LONGEST_BACKOFF_US = 300_000_000
FORGOTTEN_AFTER_US = 600_000_000


class StepsOfRun:
    """Starts and stops processes on the host's clock, draws durations, emits what was done.

    ``pending`` counts steps that are not finished. Processes are named by ``kind`` and their place.
    """

    def __init__(self, host: StepHost, kind: str) -> None:
        self.host = host
        self.pending = 0
        #: Processes that steps have killed.
        self.killed: set[Process] = set()
        self._kind = kind
        self._names: dict[int, str] = {}
        self.phases = Phases(host.settings, host.scenario.steps, host.seed)
        self._draws = Stream(host.seed, "plan")
        self._drawn = 0
        self._drains = host.settings.distribution("drain_ms").largest_us > 0
        self._hook_ms, left_ms = stopping_ms(host.settings)
        self._killed_ms = None if left_ms is None else self._hook_ms + left_ms
        #: The callbacks that wait for the end of each process that got SIGTERM.
        self._terminating: dict[Process, list[Callable[[], None]]] = {}
        #: The last failure of a process, and the back-off after it.
        self._failures: dict[str, tuple[int, int]] = {}
        #: Processes that have failed and wait until they start again, by name.
        self._failed: dict[str, Process] = {}

    def begin(self) -> None:
        """Something has begun that a run must wait for."""
        self.pending += 1

    def end(self) -> None:
        """Something that `begin` announced is finished."""
        self.pending -= 1

    def duration_us(self, setting: str) -> int:
        """Draw a duration from a setting's distribution."""
        return self.host.settings.distribution(setting).at(self._draw())

    def delay_within_us(self, over_ms: int) -> int:
        """Draw a delay that spreads processes evenly over ``over_ms``."""
        return self._draw() * over_ms * 1000 >> DRAW_BITS

    def random_order(self, count: int) -> list[int]:
        """The numbers below ``count`` in an order that is drawn."""
        return sorted(range(count), key=lambda _: self._draw())

    def emit_step(self, do: str, member: str | None, detail: str) -> None:
        self.host.trace(Source.WORLD, StepTaken(self.host.group, member, do, detail))

    def places_of(self, members: Iterable[int]) -> list[int]:
        """The places of the processes that hold these members."""
        each = self.host.settings.integer("members_per_pod")
        return list(dict.fromkeys(member // each for member in members))

    def pods(self) -> list[Process]:
        """The processes that run, by their places.

        To a controller pods that terminate do not belong, but those that have failed and start again do.
        """
        pods = list(self.host.processes.values())
        if self.host.settings.choice("deployment") != PROCESSES:
            pods = [pod for pod in pods if pod not in self._terminating] + list(self._failed.values())
        return sorted(pods, key=lambda process: process.index)

    def process(self, name: str) -> Process | None:
        """The process under this name that runs, or waits until it starts again."""
        return self.host.processes.get(name) or self._failed.get(name)

    def spawn(
        self,
        index: int,
        name: str,
        delay_us: int,
        on_started: Callable[[Process], None] | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> None:
        """Start a new process under ``name``, which polls for the first time after ``delay_us``.

        If another step has started one under that name by then, ``on_started`` gets that one. It gets those,
        too, that take the place of one that has failed. It never polls if it is not wanted any more by then.
        """
        self.begin()

        def first_poll() -> None:
            if is_wanted is None or is_wanted():
                self._first_poll(index, name, on_started)
            self.end()

        self.host.clock.after(delay_us, first_poll)

    def _first_poll(self, index: int, name: str, on_started: Callable[[Process], None] | None) -> None:
        process = self.host.processes.get(name)
        if process is None or not process.alive:
            process = self._new_process(index, name, on_started)
        if on_started is not None:
            on_started(process)

    def _new_process(self, index: int, name: str, on_started: Callable[[Process], None] | None) -> Process:
        process = self.host.new_process(index, name)
        if self.host.settings.flag("restart_failed"):
            process.on_exit = lambda: self._restart_failed(process, on_started)
        process.start()
        return process

    def _restart_failed(self, process: Process, on_started: Callable[[Process], None] | None) -> None:
        """A fatal error has ended the consumer, and its process: Kubernetes starts the process again.

        A run does not wait for that: some processes fail again and again.
        """
        if process in self.killed:
            return
        now_us = self.host.clock.now_us
        last_us, backoff_us = self._failures.get(process.name, (now_us, 0))
        if now_us - last_us > FORGOTTEN_AFTER_US:
            backoff_us = 0
        backoff_us = min(max(2 * backoff_us, FIRST_BACKOFF_US), LONGEST_BACKOFF_US)
        self._failures[process.name] = now_us, backoff_us
        self.emit_step("restart-failed", process.name, f"in {backoff_us // 1_000_000} s")
        delay_us = backoff_us + self.duration_us("start_ms")
        self._failed[process.name] = process
        self.host.clock.after(delay_us, self._start_again, process, on_started)

    def _start_again(self, process: Process, on_started: Callable[[Process], None] | None) -> None:
        if self._failed.get(process.name) is process:  # else a step has stopped it meanwhile
            del self._failed[process.name]
            self._first_poll(process.index, process.name, on_started)

    def terminate(self, process: Process, do: str, then: Callable[[], None] | None) -> None:
        """Send SIGTERM: the process drains and closes, or is killed; call ``then`` when it is gone.

        A process that another step has sent SIGTERM to goes on closing and gets no second one.
        """
        self.begin()

        def gone() -> None:
            if then is not None:
                then()
            self.end()

        if not process.alive:
            self._failed.pop(process.name, None)
            gone()
            return
        waiting = self._terminating.setdefault(process, [])
        waiting.append(gone)
        if len(waiting) == 1:
            for name in member_names(process.name, self.host.settings.integer("members_per_pod")):
                self.emit_step(do, name, "SIGTERM")
            process.on_exit = lambda: self._terminated(process)
            self._shut_down(process, do)

    def _terminated(self, process: Process) -> None:
        for gone in self._terminating.pop(process):
            gone()

    def _shut_down(self, process: Process, do: str) -> None:
        """The application notices SIGTERM after `stop_grace_ms`. SIGKILL follows if that was too slow."""
        clock = self.host.clock
        clock.after(self._hook_ms * 1000 + self.duration_us("stop_grace_ms"), self._drain, process)
        if self._killed_ms is not None:
            clock.after(self._killed_ms * 1000, self._kill, process, do)

    def _drain(self, process: Process) -> None:
        """The application finishes its batch: it does not poll, but its heartbeats go on."""
        if not self._drains:
            process.stop()
            return
        drain_us = self.duration_us("drain_ms")
        for consumer in consumers_of(self.host, process):
            consumer.pauses.busy(drain_us)
        self.host.clock.after(drain_us, process.stop)

    def _kill(self, process: Process, do: str) -> None:
        """terminationGracePeriodSeconds are over: SIGKILL, without LeaveGroup."""
        if process.alive:
            self.emit_step(do, process.name, f"SIGKILL {self._killed_ms} ms after SIGTERM")
            process.crash()

    def _draw(self) -> int:
        self._drawn += 1
        return self._draws.at(self._drawn)

    def name_of(self, index: int) -> str:
        """The name of the process in this place."""
        name = self._names.get(index)
        if name is None:
            name = self._names[index] = self.host.settings.member_name(index, self._kind)
        return name
