"""The start and the end of a run: its first rows, the condition for its end, its last rows."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.runs.scenario_host import ScenarioHost
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.topics import mean_rate
from groupstorm.trace.events.scenario import InvariantChecked, RequestsCounted, ScenarioEnded, ScenarioStarted
from groupstorm.trace.schema import Source

#: Called now and then with the time so far (microseconds) and the phase: steps or settling.
Progress = Callable[[int, str], None]


def emit_run_start(host: ScenarioHost) -> None:
    """Emit the first row: the scenario, its partitions and the rates of its records."""
    partitions = tuple(map(str, host.partitions))
    rate = mean_rate(host.settings)
    host.trace(Source.WORLD, ScenarioStarted(host.group, host.scenario.as_json(), partitions, rate, 0))
    host.rate_rows.look()


class EndCondition:
    """Says when a run is over: all steps are done, the group has settled and the lag is gone, or
    `settle_timeout_ms` has passed since the last step.

    The driver of the run, in virtual or real time, asks at intervals.
    """

    def __init__(self, host: ScenarioHost, steps: StepRunner, progress: Progress | None) -> None:
        self._host = host
        self._steps = steps
        self._progress = progress
        self._settle_timeout_us = host.settings.integer("settle_timeout_ms") * 1000
        self._least_us = host.settings.integer("least_duration_ms") * 1000
        #: When the last step was done; None as long as there are steps to do.
        self.steps_done_us: int | None = None
        #: Whether the group had settled and the lag was gone when `is_met` was last asked.
        self.at_rest = False
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
        if now_us < self._least_us:
            return False
        self.at_rest = not host.follow_ups and host.settled and host.lag() == 0 and self._all_owned()
        return self.at_rest or self.timed_out

    @property
    def timed_out(self) -> bool:
        """Whether `settle_timeout_ms` has passed since the last step."""
        if self.steps_done_us is None:
            return False
        return self._host.clock.now_us - self.steps_done_us >= self._settle_timeout_us

    def _all_owned(self) -> bool:
        """Whether the group knows of all partitions: it does not see a new one before a metadata refresh."""
        consumers = self._host.consumers.values()
        owned = {partition for consumer in consumers for partition in consumer.work.partitions}
        return not consumers or all(partition in owned for partition in self._host.partitions)


def emit_run_end(host: ScenarioHost) -> None:
    """Emit the last rows, behind the last event of the group: sums of requests, verdicts, the end."""
    for (api, error), count in sorted(host.requests.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        host.trace(Source.WORLD, RequestsCounted(host.group, api, error, count))
    for invariant, verdict in host.invariants.verdicts.items():
        host.trace(Source.WORLD, InvariantChecked(host.group, invariant, verdict))
    host.trace(Source.WORLD, ScenarioEnded(host.group))
