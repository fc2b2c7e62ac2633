"""An autoscaler at work: it reads the group's lag from time to time, and starts and stops processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from groupstorm.storms.deployments.rollout import await_available
from groupstorm.storms.deployments.scaling_decisions import (
    HorizontalAutoscaler,
    rules_of,
    scaler_metric,
    trigger_of,
)
from groupstorm.storms.runs.scenario_host import Process
from groupstorm.storms.runs.steps_of_run import StepsOfRun
from groupstorm.storms.scenario.setting_names import HPA, KEDA, NO_AUTOSCALER, STATEFUL_SET

#: Causes of `StepTaken`.
SCALE_UP, SCALE_DOWN, SCALE_UP_GAIN = "scale-up", "scale-down", "scale-up-gain"
#: The time after the order of a scale-up's last process in which its gain is counted.
PAYBACK_US = 120_000_000


class Gain(NamedTuple):
    """Records beyond those of the old rate ``within_us`` after ``before`` processes became ``after``."""

    before: int
    after: int
    records: int
    within_us: int


class ScalingGains:
    """Follows the records that the group has committed. Scale-ups in close succession count as one.

    The old rate is that between the last two readings before the scale-up.
    """

    def __init__(self) -> None:
        #: The last two readings: time, records committed in all.
        self._readings: list[tuple[int, int]] = []
        #: Processes before and after, since when, records then, records a second before.
        self._open: tuple[int, int, int, int, int] | None = None
        self._until_us = 0

    def read(self, now_us: int, committed: int) -> Gain | None:
        """A reading of the committed records; the gain of the last scale-up if its time is over."""
        self._readings = [*self._readings[-1:], (now_us, committed)]
        return self._close() if self._open is not None and now_us >= self._until_us else None

    def scaled(self, before: int, after: int) -> Gain | None:
        """The number of processes changes right after a reading; the gain that this ends, if any."""
        if after < before:
            return self._close()
        now_us, committed = self._readings[-1]
        if self._open is None:
            then_us, then = self._readings[0]
            rate = (committed - then) * 1_000_000 // (now_us - then_us) if now_us > then_us else 0
            self._open = (before, after, now_us, committed, rate)
        else:
            self._open = (self._open[0], after, *self._open[2:])
        self._until_us = now_us + PAYBACK_US
        return None

    def _close(self) -> Gain | None:
        if self._open is None:
            return None
        before, after, since_us, then, rate = self._open
        now_us, committed = self._readings[-1]
        self._open = None
        expected = rate * (now_us - since_us) // 1_000_000
        return Gain(before, after, committed - then - expected, now_us - since_us)


class Autoscaler:
    """Scales the running processes for ``for_us``, from now on."""

    def __init__(self, steps: StepsOfRun, for_us: int) -> None:
        self._steps = steps
        self._clock = steps.host.clock
        settings = steps.host.settings
        self._kind = settings.choice("autoscaler")
        self._least = settings.integer("min_replicas")
        self._trigger = trigger_of(settings)
        self._gains = ScalingGains()
        self._horizontal = HorizontalAutoscaler(rules_of(settings))
        self._activation = settings.integer("activation_lag_threshold")
        self._cooldown_us = settings.integer("cooldown_ms") * 1000
        self._ends_us = self._active_us = self._clock.now_us
        self._ends_us += for_us
        running = sorted(steps.host.processes.values(), key=lambda process: process.index)
        #: The processes that are wanted, oldest first: running ones, and names of those that are starting.
        self._wanted = [process.name for process in running]
        self._next_index = running[-1].index + 1 if running else 0
        self._stateful = settings.choice("deployment") == STATEFUL_SET
        self._unready: set[str] = set()
        #: Names of processes that terminate.
        self._closing: set[str] = set()
        steps.begin()
        self._clock.at(self._ends_us, steps.end)
        if self._kind != NO_AUTOSCALER:
            self._every("autoscaler_sync_ms", self._sync)
        if self._kind == KEDA and self._least == 0:
            self._every("polling_interval_ms", self._switch)

    def _every(self, interval: str, decide: Callable[[], None]) -> None:
        """Call ``decide`` at the interval of this setting, as long as the autoscaler works."""
        interval_us = self._steps.host.settings.integer(interval) * 1000

        def due() -> None:
            if self._clock.now_us < self._ends_us:
                decide()
                self._clock.after(interval_us, due)

        self._clock.after(interval_us - self._steps.phases.within_us(interval, interval_us), due)

    def _sync(self) -> None:
        """The HorizontalPodAutoscaler's turn."""
        lags = self._steps.host.group_lags()
        metric = sum(lags) if self._kind == HPA else scaler_metric(lags, self._trigger)
        self._say_gain(self._gains.read(self._clock.now_us, self._steps.host.committed_records()))
        replicas = len(self._wanted)
        decided = self._horizontal.decide(self._clock.now_us // 1000, replicas, metric)
        self._scale_to(decided, sum(lags))

    def _switch(self) -> None:
        """KEDA's turn: from zero to one as soon as there is lag, to zero after the cooldown."""
        lag = sum(self._steps.host.group_lags())
        now_us = self._clock.now_us
        self._say_gain(self._gains.read(now_us, self._steps.host.committed_records()))
        if lag > self._activation:
            self._active_us = now_us
            if not self._wanted:
                self._scale_to(1, lag)
        elif self._wanted and now_us - self._active_us >= self._cooldown_us:
            self._scale_to(0, lag)

    def _scale_to(self, replicas: int, lag: int) -> None:
        """Start or stop processes until ``replicas`` are wanted."""
        before = len(self._wanted)
        if replicas == before:
            return
        do = SCALE_UP if replicas > before else SCALE_DOWN
        self._say_gain(self._gains.scaled(before, replicas))
        self._steps.emit_step(do, None, f"from {before} to {replicas} processes, lag {lag:,}")
        while len(self._wanted) < replicas:
            self._start()
        while len(self._wanted) > replicas:
            self._stop()

    def _say_gain(self, gain: Gain | None) -> None:
        if gain is not None:
            self._steps.emit_step(
                SCALE_UP_GAIN,
                None,
                f"from {gain.before} to {gain.after} processes: {gain.records:+,} records in "
                f"{gain.within_us // 1_000_000} s",
            )

    def _start(self) -> None:
        index = len(self._wanted) if self._stateful else self._next_index
        name = self._steps.name_of(index)
        self._next_index += 1
        self._wanted.append(name)
        self._unready.add(name)
        if name not in self._closing:  # else a StatefulSet starts the pod again when the old one is gone
            self._spawn(index, name)

    def _spawn(self, index: int, name: str) -> None:

        def started(process: Process) -> None:
            if name in self._wanted:
                await_available(self._steps, process, lambda: self._unready.discard(name))
            else:  # it was not wanted any more before it polled for the first time
                self._terminate(process)

        self._steps.spawn(index, name, self._steps.duration_us("start_ms"), started)

    def _stop(self) -> None:
        """Stop one process: one that is not ready goes first, then the newest (StatefulSet: the newest)."""
        unready = [] if self._stateful else [name for name in self._wanted if name in self._unready]
        name = (unready or self._wanted)[-1]
        self._wanted.remove(name)
        self._unready.discard(name)
        process = self._steps.host.processes.get(name)
        if process is not None and name not in self._closing:
            self._terminate(process)

    def _terminate(self, process: Process) -> None:
        self._closing.add(process.name)

        def gone() -> None:
            self._closing.discard(process.name)
            if process.name in self._wanted:
                self._spawn(process.index, process.name)

        self._steps.terminate(process, SCALE_DOWN, gone)
