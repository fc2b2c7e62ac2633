"""Carries out a scenario's steps: which process starts, stops or crashes when."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.deployments.deployment_steps import DeploymentSteps
from groupstorm.storms.deployments.shutdown import Shutdown
from groupstorm.storms.runs.scenario_host import ConsumerProcess, Process, StepHost
from groupstorm.storms.scenario.member_names import member_name
from groupstorm.storms.scenario.randomness import DRAW_BITS, Stream
from groupstorm.storms.scenario.steps import Step
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.schema import Source

#: The back-off of a container that fails again and again (kubelet, CrashLoopBackOff).
FIRST_BACKOFF_US = 10_000_000
LONGEST_BACKOFF_US = 300_000_000
FORGOTTEN_AFTER_US = 600_000_000


#: reconnect.backoff.ms, the default of Kafka's clients.
RECONNECT_US = 50_000


class StepRunner:
    """Runs the steps of a scenario on its host's clock. ``pending`` counts steps that are not finished.

    ``handlers`` has a method for each kind of step; an application may add kinds of its own. Processes are
    named by ``kind`` and their place.
    """

    def __init__(self, host: StepHost, kind: str = "member") -> None:
        self.host = host
        self.pending = 0
        self.handlers: dict[str, Callable[[Step], None]] = {
            "start": self._start,
            "add": self._add,
            "stop": self._stop,
            "restart": self._restart,
            "crash": self._crash,
            "crash-restart": self._crash_restart,
            "busy": self._busy,
            "pause": self._pause,
            "disconnect": self._disconnect,
            "reconnect-storm": self._reconnect_storm,
            "add-partitions": self._add_partitions,
            **DeploymentSteps(self).handlers,
        }
        self._kind = kind
        self._names: dict[int, str] = {}
        self._shutdown = Shutdown(self)
        self._draws = Stream(host.seed, "plan")
        self._drawn = 0
        self._members = 0
        #: Processes that steps have killed, and the last failure of others with the back-off after it.
        self._killed: set[Process] = set()
        self._terminating: dict[Process, list[Callable[[], None]]] = {}
        self._failures: dict[str, tuple[int, int]] = {}
        for step in host.scenario.steps:
            self.begin()
            host.clock.at(step.at_ms * 1000, self._take, step)

    # -- what all steps use ----------------------------------------------------------------------

    def begin(self) -> None:
        """Something has begun that a run must wait for."""
        self.pending += 1

    def end(self) -> None:
        """What `begin` announced is finished."""
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

    def chosen(self, step: Step) -> list[Process]:
        """The processes that a step names, if they run."""
        indexes = range(self._members) if step.members is None else step.members
        running = self.host.processes
        return [running[self.name_of(index)] for index in indexes if self.name_of(index) in running]

    def spawn(
        self,
        index: int,
        name: str,
        delay_us: int,
        on_started: Callable[[Process], None] | None = None,
    ) -> None:
        """Start a new process under ``name``, which polls for the first time after ``delay_us``.

        If another step has started one under that name by then, ``on_started`` gets that one.
        """
        self.begin()

        def first_poll() -> None:
            self._first_poll(index, name, on_started)
            self.end()

        self.host.clock.after(delay_us, first_poll)

    def _first_poll(self, index: int, name: str, on_started: Callable[[Process], None] | None) -> None:
        process = self.host.processes.get(name)
        if process is None or not process.alive:
            process = self._new_process(index, name)
        if on_started is not None:
            on_started(process)

    def _new_process(self, index: int, name: str) -> Process:
        process = self.host.new_process(index, name)
        if self.host.settings.flag("restart_failed"):
            process.on_exit = lambda: self._restart_failed(process)
        process.start()
        return process

    def _restart_failed(self, process: Process) -> None:
        """A fatal error has ended the consumer, and its process: Kubernetes starts the process again.

        A run does not wait for that: some processes fail again and again.
        """
        if process in self._killed:
            return
        now_us = self.host.clock.now_us
        last_us, backoff_us = self._failures.get(process.name, (now_us, 0))
        if now_us - last_us > FORGOTTEN_AFTER_US:
            backoff_us = 0
        backoff_us = min(max(2 * backoff_us, FIRST_BACKOFF_US), LONGEST_BACKOFF_US)
        self._failures[process.name] = now_us, backoff_us
        self.emit_step("restart-failed", process.name, f"in {backoff_us // 1_000_000} s")
        delay_us = backoff_us + self.duration_us("start_ms")
        self.host.clock.after(delay_us, self._first_poll, process.index, process.name, None)

    def terminate(self, process: Process, do: str, then: Callable[[], None] | None) -> None:
        """Send SIGTERM: the process drains and closes, or is killed; call ``then`` when it is gone.

        A process that another step has sent SIGTERM to goes on closing.
        """
        self.begin()
        self.emit_step(do, process.name, "SIGTERM")

        def gone() -> None:
            if then is not None:
                then()
            self.end()

        if not process.alive:
            gone()
            return
        waiting = self._terminating.setdefault(process, [])
        waiting.append(gone)
        if len(waiting) == 1:
            process.on_exit = lambda: self._terminated(process)
            self._shutdown.begin(process, do)

    def _terminated(self, process: Process) -> None:
        for gone in self._terminating.pop(process):
            gone()

    def _draw(self) -> int:
        self._drawn += 1
        return self._draws.at(self._drawn)

    def _take(self, step: Step) -> None:
        if step.settings:
            self.host.use_release(step.release)
        self.handlers[step.do](step)
        self.end()

    def name_of(self, index: int) -> str:
        """The name of the process in this place."""
        name = self._names.get(index)
        if name is None:
            name = self._names[index] = member_name(self.host.settings, index, self._kind)
        return name

    # -- single steps ----------------------------------------------------------------------------

    def _start(self, step: Step) -> None:
        wanted = self.host.settings.integer("members")
        indexes = range(wanted) if step.members is None else step.members
        self._members = wanted
        self.emit_step(step.do, None, f"{len(indexes)} members join within {step.over_ms} ms")
        for index in indexes:
            self.spawn(index, self.name_of(index), self.delay_within_us(step.over_ms))

    def _add(self, step: Step) -> None:
        self.emit_step(step.do, None, f"{step.count} more processes are started")
        for _ in range(step.count):
            index = self._members
            self._members += 1
            delay_us = self.delay_within_us(step.over_ms)
            self.spawn(index, self.name_of(index), delay_us + self.duration_us("start_ms"))

    def _stop(self, step: Step) -> None:
        for process in self.chosen(step):
            self.terminate(process, step.do, None)

    def _restart(self, step: Step) -> None:
        for process in self.chosen(step):
            self.terminate(process, step.do, self._respawn(process))

    def _respawn(self, process: Process) -> Callable[[], None]:
        return lambda: self.spawn(process.index, process.name, self.duration_us("start_ms"))

    def _crash(self, step: Step) -> None:
        for process in self.chosen(step):
            self.emit_step(step.do, process.name, "SIGKILL")
            self._killed.add(process)
            process.crash()

    def _crash_restart(self, step: Step) -> None:
        for process in self.chosen(step):
            self.emit_step(step.do, process.name, "SIGKILL")
            self._killed.add(process)
            process.crash()
            self._respawn(process)()

    def _for_a_while(self, step: Step, begin: Callable[[ConsumerProcess, int], None]) -> None:
        for process in self.chosen(step):
            consumer = self.host.consumers[process.name]
            self.begin()
            self.emit_step(step.do, consumer.name, f"for {step.for_ms} ms")
            begin(consumer, step.for_ms * 1000)
            self.host.clock.after(step.for_ms * 1000, self.end)

    def _busy(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.pauses.busy(for_us))

    def _pause(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.pauses.pause(for_us))

    def _disconnect(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.disconnect(for_us))

    def _reconnect_storm(self, step: Step) -> None:
        """As a load balancer that restarts, or a certificate that is exchanged, breaks connections."""
        every_us = step.for_ms * 1000 // step.count
        self.emit_step(step.do, None, f"{step.count} times, every {every_us // 1000} ms")
        for number in range(step.count):
            self.begin()
            self.host.clock.after(number * every_us, self._break_connections, step)

    def _break_connections(self, step: Step) -> None:
        for process in self.chosen(step):
            self.host.consumers[process.name].disconnect(RECONNECT_US)
        self.host.clock.after(RECONNECT_US + 1, self.end)

    def _add_partitions(self, step: Step) -> None:
        self.emit_step(step.do, None, f"{step.topic} has {step.partitions} partitions from now on")
        self.host.add_partitions(step.topic, step.partitions)
