"""The course of a run: its first rows, its steps, the condition for its end, its last rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupstorm.storms.deployments.deployment_steps import DeploymentSteps
from groupstorm.storms.runs.steps_of_run import (
    Process,
    ScenarioHost,
    StepHost,
    StepsOfRun,
    consumers_of,
)
from groupstorm.storms.scenario.member_rules import SlowRecordList
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import Step
from groupstorm.storms.scenario.topics import mean_rate, rates_of
from groupstorm.trace.events.scenario import InvariantChecked, RequestsCounted, ScenarioEnded, ScenarioStarted
from groupstorm.trace.schema import Source

#: Called now and then with the time so far (microseconds) and the phase: steps or settling.
Progress = Callable[[int, str], None]

#: reconnect.backoff.ms, the default of Kafka's clients.
RECONNECT_US = 50_000


class StepRunner(StepsOfRun):
    """Takes the steps of a scenario on its host's clock.

    ``handlers`` has a method for each kind of step; an application may add kinds of its own.
    """

    def __init__(self, host: StepHost, kind: str = "member") -> None:
        super().__init__(host, kind)
        self.handlers: dict[str, Callable[[Step], None]] = {
            "start": self._start,
            "add": self._add,
            "stop": self._stop,
            "restart": self._restart,
            "crash": self._crash,
            "crash-restart": self._crash,
            "busy": self._for_a_while,
            "pause": self._for_a_while,
            "disconnect": self._for_a_while,
            "reconnect-storm": self._reconnect_storm,
            "add-partitions": self._add_partitions,
            **DeploymentSteps(self).handlers,
        }
        self._processes = 0
        #: The places whose processes steps have ended. One that has failed stays away (restart_failed).
        self.ended: set[int] = set()
        for step in host.scenario.steps:
            self.begin()
            host.clock.at(step.at_ms * 1000, self._take, step)

    def _take(self, step: Step) -> None:
        if step.settings:
            self.host.use_release(step.release)
        self.handlers[step.do](step)
        self.end()

    def chosen(self, step: Step) -> list[Process]:
        """The processes in the places that a step names, if they run; a rollout gives places new names."""
        running = self.host.processes
        newest = {process.index: process for process in running.values()}
        found = [running.get(self.name_of(index)) or newest.get(index) for index in self._places(step)]
        return [process for process in found if process is not None]

    def _places(self, step: Step) -> Sequence[int]:
        return range(self._processes) if step.members is None else self.places_of(step.members)

    def _start(self, step: Step) -> None:
        settings = self.host.settings
        self._processes = settings.processes
        members = range(settings.integer("members")) if step.members is None else step.members
        self.emit_step(step.do, None, f"{len(members)} members join within {step.over_ms} ms")
        for index in self.places_of(members):
            delay_us = self.phases.start_us + self.delay_within_us(step.over_ms)
            self.spawn(index, self.name_of(index), delay_us)

    def _add(self, step: Step) -> None:
        self.emit_step(step.do, None, f"{step.count} more processes are started")
        for _ in range(step.count):
            index = self._processes
            self._processes += 1
            delay_us = self.delay_within_us(step.over_ms)
            self.spawn(index, self.name_of(index), delay_us + self.duration_us("start_ms"))

    def _stop(self, step: Step) -> None:
        for process in self.chosen(step):
            self.terminate(process, step.do, None)
            self.ended.add(process.index)

    def _restart(self, step: Step) -> None:
        gone = self.ended.intersection(self._places(step))
        self.ended -= gone
        for process in self.chosen(step):
            self.terminate(process, step.do, self._respawn(process))
            gone.discard(process.index)
        for index in sorted(gone):
            self.emit_step(step.do, self.name_of(index), "nothing to stop")
            self.spawn(index, self.name_of(index), self.duration_us("start_ms"))

    def _respawn(self, process: Process) -> Callable[[], None]:
        return lambda: self.spawn(process.index, process.name, self.duration_us("start_ms"))

    def _crash(self, step: Step) -> None:
        for process in self.chosen(step):
            self.emit_step(step.do, process.name, "SIGKILL")
            self.killed.add(process)
            process.crash()
            if step.do == "crash-restart":
                self._respawn(process)()
            else:
                self.ended.add(process.index)

    def _for_a_while(self, step: Step) -> None:
        """A pause or a broken connection affects the other consumers of a pod, too; a long batch does not."""
        for process in self.chosen(step):
            for consumer in consumers_of(self.host, process):
                is_chosen = step.members is None or consumer.index in step.members
                if step.do == "busy" and not is_chosen:
                    continue
                self.begin()
                self.emit_step(step.do, consumer.name, f"for {step.for_ms} ms")
                pauses = {"busy": consumer.pauses.busy, "pause": consumer.pauses.pause}
                pauses.get(step.do, consumer.disconnect)(step.for_ms * 1000)
                self.host.clock.after(step.for_ms * 1000, self.end)

    def _reconnect_storm(self, step: Step) -> None:
        """Break connections, as a load balancer that restarts or a certificate that is exchanged does."""
        every_us = step.for_ms * 1000 // step.count
        self.emit_step(step.do, None, f"{step.count} times, every {every_us // 1000} ms")
        for number in range(step.count):
            self.begin()
            self.host.clock.after(number * every_us, self._break_connections, step)

    def _break_connections(self, step: Step) -> None:
        for process in self.chosen(step):
            for consumer in consumers_of(self.host, process):
                consumer.disconnect(RECONNECT_US)
        self.host.clock.after(RECONNECT_US + 1, self.end)

    def _add_partitions(self, step: Step) -> None:
        self.emit_step(step.do, None, f"{step.topic} has {step.partitions} partitions from now on")
        self.host.add_partitions(step.topic, step.partitions)


def emit_run_start(host: ScenarioHost) -> None:
    """Emit the first row: the scenario, its partitions and the rates of its records."""
    partitions = tuple(map(str, host.partitions))
    rate = mean_rate(host.settings)
    host.trace(Source.WORLD, ScenarioStarted(host.group, host.scenario.as_json(), partitions, rate, 0))
    host.rate_rows.look()


#: Within this time a record that has arrived has been fetched, unless its owner is behind.
FETCHED_US = 1_000_000


class EndCondition:
    """Says when a run is over: all steps are done, the group has settled and the lag is gone, or
    `settle_timeout_ms` has passed since the last step.

    The driver of the run, in virtual or real time, asks at intervals.
    """

    def __init__(self, host: ScenarioHost, steps: StepRunner, progress: Progress | None) -> None:
        self._host = host
        self._steps = steps
        self._progress = progress
        self.settle_timeout_us = host.settings.integer("settle_timeout_ms") * 1000
        #: A scenario that names a record by its time is about this record: until then nothing is over.
        self._named_us = _named_records_us(host.settings)
        self._least_us = max(self._named_us, host.settings.integer("least_duration_ms") * 1000)
        #: When the last step was done; None as long as there are steps to do.
        self.steps_done_us: int | None = None
        #: Whether the group had settled and the lag was gone when `is_met` was last asked; when it last had.
        self.at_rest = False
        self.rested_us = 0
        #: Quiet time that the run adds once the condition `is_met`.
        self.tail_us = host.settings.integer("tail_ms") * 1000

    def is_met(self) -> bool:
        host, now_us = self._host, self._host.clock.now_us
        if self._progress is not None:
            self._progress(now_us, "steps" if self._steps.pending else "settling")
        if self._steps.pending:
            self.steps_done_us = None
            return False
        if self.steps_done_us is None:
            self.steps_done_us = now_us
        if now_us < self._least_us - self.settle_timeout_us:
            return False
        self.at_rest = not host.follow_ups and host.settled and host.caught_up() and self._all_owned()
        if self.at_rest:
            self.rested_us = now_us
        return now_us >= self._least_us and (self.at_rest or self.timed_out)

    @property
    def timed_out(self) -> bool:
        """Whether `settle_timeout_ms` has passed since the last step, or the last record that is named."""
        if self.steps_done_us is None:
            return False
        return self._host.clock.now_us - max(self.steps_done_us, self._named_us) >= self.settle_timeout_us

    def _all_owned(self) -> bool:
        """Whether the group knows of all partitions: it does not see a new one before a metadata refresh."""
        consumers = self._host.consumers.values()
        owned = {partition for consumer in consumers for partition in consumer.work.partitions}
        return not consumers or all(partition in owned for partition in self._host.partitions)


def _named_records_us(settings: Settings) -> int:
    """When the last of the slow records that are named by their time has arrived, and been fetched."""
    latest_us = 0
    for record in settings.of_type("slow_records", SlowRecordList).records:
        if record.at_us is not None:
            rates = [
                rate
                for from_us, rate in rates_of(settings, record.topic, record.partition)
                if from_us <= record.at_us
            ]
            if rates[-1]:
                latest_us = max(latest_us, record.at_us + 1_000_000_000 // rates[-1] + FETCHED_US)
    return latest_us


def emit_run_end(host: ScenarioHost) -> None:
    """Emit the last rows, behind the last event of the group: sums of requests, verdicts, the end."""
    for (api, error), count in sorted(host.requests.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        host.trace(Source.WORLD, RequestsCounted(host.group, api, error, count))
    for invariant, verdict in host.invariants.verdicts.items():
        host.trace(Source.WORLD, InvariantChecked(host.group, invariant, verdict))
    host.trace(Source.WORLD, ScenarioEnded(host.group))
