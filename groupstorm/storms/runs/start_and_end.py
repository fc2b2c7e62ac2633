"""The start and the end of a run: its first rows, the condition for its end, its last rows."""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.storms.runs.scenario_host import ScenarioHost
from groupstorm.storms.runs.step_runner import StepRunner
from groupstorm.storms.scenario.record_rates import mean_rate, rates_of
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.slow_record_settings import SlowRecordList
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
        self._settle_timeout_us = host.settings.integer("settle_timeout_ms") * 1000
        #: A scenario that names a record by its time is about this record: until then nothing is over.
        self._named_us = _named_records_us(host.settings)
        self._least_us = max(self._named_us, host.settings.integer("least_duration_ms") * 1000)
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
        """Whether `settle_timeout_ms` has passed since the last step, or the last record that is named."""
        if self.steps_done_us is None:
            return False
        return self._host.clock.now_us - max(self.steps_done_us, self._named_us) >= self._settle_timeout_us

    def _all_owned(self) -> bool:
        """Whether the group knows of all partitions: it does not see a new one before a metadata refresh."""
        consumers = self._host.consumers.values()
        owned = {partition for consumer in consumers for partition in consumer.work.partitions}
        return not consumers or all(partition in owned for partition in self._host.partitions)


def _named_records_us(settings: Settings) -> int:
    """When the last of the slow records that are named by their time has arrived, and been fetched."""
    slow_records = settings.value("slow_records")
    assert isinstance(slow_records, SlowRecordList)
    latest_us = 0
    for record in slow_records.records:
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
