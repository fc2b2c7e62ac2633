"""Autoscalers at work: a HorizontalPodAutoscaler that decides on the metric of KEDA's Kafka scaler.

KEDA hands its metric to a HorizontalPodAutoscaler, which decides; only between zero and one KEDA decides
itself. Sources: pkg/controller/podautoscaler in Kubernetes (`reconcileAutoscaler`,
`GetExternalPerPodMetricReplicas`, `stabilizeRecommendationWithBehaviors`,
`convertDesiredReplicasWithBehaviorRate`, `calculateScaleUpLimitWithScalingRules`),
pkg/scalers/kafka_scaler.go in KEDA (`getTotalLag`, `getLagForPartition`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from groupstorm.storms.deployments.rollout import await_available
from groupstorm.storms.runs.steps_of_run import Process, StepsOfRun
from groupstorm.storms.scenario.quantities import DISABLED, MIN, ScalingBehavior, ScalingPolicy
from groupstorm.storms.scenario.setting_names import HPA, KEDA, NO_AUTOSCALER, STATEFUL_SET
from groupstorm.storms.scenario.settings import Settings


class ScalingRules(NamedTuple):
    """`behavior`: windows, and how much may change within a period."""

    least: int
    most: int
    target: int
    tolerance_percent: int
    up_window_ms: int
    down_window_ms: int
    up: ScalingBehavior
    down: ScalingBehavior


def rules_of(settings: Settings) -> ScalingRules:
    """The rules of a scenario. A HorizontalPodAutoscaler never scales to zero."""
    period_ms = settings.integer("scale_period_ms")
    up = (
        ScalingPolicy(False, settings.integer("scale_up_pods"), period_ms),
        ScalingPolicy(True, settings.integer("scale_up_percent"), period_ms),
    )
    down = (ScalingPolicy(True, settings.integer("scale_down_percent"), period_ms),)
    return ScalingRules(
        least=max(1, settings.integer("min_replicas")),
        most=settings.integer("max_replicas"),
        target=settings.integer("lag_threshold"),
        tolerance_percent=settings.integer("tolerance_percent"),
        up_window_ms=settings.integer("scale_up_stabilization_ms"),
        down_window_ms=settings.integer("scale_down_stabilization_ms"),
        up=settings.optional("scale_up_behavior", ScalingBehavior) or ScalingBehavior(up),
        down=settings.optional("scale_down_behavior", ScalingBehavior) or ScalingBehavior(down),
    )


def recommended(metric: int, replicas: int, rules: ScalingRules) -> int:
    """The number of pods that ``metric`` asks for: ``replicas`` within the tolerance."""
    wanted = rules.target * replicas
    if abs(metric - wanted) * 100 <= rules.tolerance_percent * wanted:
        return replicas
    return -(-metric // rules.target)


class HorizontalAutoscaler:
    """Remembers recommendations and changes as far as the windows and periods reach back."""

    def __init__(self, rules: ScalingRules) -> None:
        self._rules = rules
        self._recommendations: list[tuple[int, int]] = []
        #: When pods were added (positive) or removed (negative), and how many.
        self._changes: list[tuple[int, int]] = []

    def decide(self, now_ms: int, replicas: int, metric: int) -> int:
        """The number of pods from now on. A decision counts as carried out."""
        rules = self._rules
        if replicas == 0:
            return 0  # scaling is switched off until something else starts a pod
        decided = min(max(replicas, rules.least), rules.most)
        if decided == replicas:  # else neither the metric nor the policies count
            stabilized = self._stabilized(now_ms, replicas, recommended(metric, replicas, rules))
            decided = self._limited(now_ms, replicas, stabilized)
        if decided != replicas:
            self._changes.append((now_ms, decided - replicas))
        return decided

    def _stabilized(self, now_ms: int, replicas: int, desired: int) -> int:
        """The lowest of the recent recommendations above ``replicas``, or the highest of those below."""
        rules = self._rules
        if not self._recommendations:  # recordInitialRecommendation
            self._recommendations.append((now_ms, replicas))
        up = min([n for at_ms, n in self._recommendations if at_ms > now_ms - rules.up_window_ms] + [desired])
        down = max(
            [n for at_ms, n in self._recommendations if at_ms > now_ms - rules.down_window_ms] + [desired]
        )
        kept_ms = max(rules.up_window_ms, rules.down_window_ms)
        self._recommendations = [one for one in self._recommendations if one[0] > now_ms - kept_ms]
        self._recommendations.append((now_ms, desired))
        return min(max(replicas, up), max(down, up))

    def _limited(self, now_ms: int, replicas: int, desired: int) -> int:
        """``desired`` within the least and most, as far as the policies allow in their periods."""
        rules = self._rules
        if desired > replicas:
            return min(desired, rules.most, replicas + self._allowed(now_ms, replicas, rules.up, 1))
        if desired < replicas:
            return max(desired, rules.least, replicas - self._allowed(now_ms, replicas, rules.down, -1))
        return replicas

    def _allowed(self, now_ms: int, replicas: int, behavior: ScalingBehavior, sign: int) -> int:
        """The number of pods that may come (``sign`` 1) or go (-1) now."""
        if behavior.select == DISABLED:
            return 0
        allowed = []
        for policy in behavior.policies:
            recent = sum(change for at_ms, change in self._changes if at_ms > now_ms - policy.period_ms)
            change = policy.value
            if policy.is_percentage:
                change = -(-(replicas - recent) * policy.value // 100)
            allowed.append(change - sign * recent)
        return max(0, min(allowed) if behavior.select == MIN else max(allowed))


#: The lag of a partition without a committed offset (offsetResetPolicy: latest).
LAG_WITHOUT_OFFSET = 1


class KafkaTrigger(NamedTuple):
    """The trigger's metadata."""

    threshold: int
    allow_idle: bool
    only_with_lag: bool
    even: bool


def trigger_of(settings: Settings) -> KafkaTrigger:
    return KafkaTrigger(
        settings.integer("lag_threshold"),
        settings.flag("allow_idle_consumers"),
        settings.flag("limit_to_partitions_with_lag"),
        settings.flag("even_distribution"),
    )


def partition_lag(end: int, committed: int) -> int:
    """The lag of a partition whose log ends at ``end``; ``committed`` -1: no offset is committed."""
    return LAG_WITHOUT_OFFSET if committed < 0 else end - committed


def scaler_metric(lags: Sequence[int], trigger: KafkaTrigger) -> int:
    """The metric for the HorizontalPodAutoscaler from the lag of every partition."""
    total = sum(lags)
    partitions = len(lags)
    if trigger.even:
        fitting = (
            n for n in range(1, partitions + 1) if partitions % n == 0 and n * trigger.threshold >= total
        )
        return next(fitting, partitions) * trigger.threshold if total else 0
    most = sum(lag > 0 for lag in lags) if trigger.only_with_lag else partitions
    if (not trigger.allow_idle or trigger.only_with_lag) and total // trigger.threshold > most:
        return most * trigger.threshold
    return total


#: Causes of `StepTaken`.
SCALE_UP, SCALE_DOWN, SCALE_UP_GAIN = "scale-up", "scale-down", "scale-up-gain"
#: The time after the order of a scale-up's last process in which its gain is counted.
PAYBACK_US = 120_000_000
#: The time before a scale-up over which its old rate counts: background commits come in steps, of which it
#: has several (five seconds of a consumer, 30 of Kafka Streams).
RATE_US = 60_000_000


class ScalingGains:
    """Follows the records that the group has committed, and says the gain of each scale-up.

    A gain are the records beyond those of the old rate, which is that of the last minute before the scale-up.
    Of less than half a minute no rate is known, and no gain. Scale-ups in close succession count as one.
    """

    def __init__(self) -> None:
        #: The readings of the last minute: time, records committed in all.
        self._readings: list[tuple[int, int]] = []
        #: Processes before and after, since when, records then, records a second before.
        self._open: tuple[int, int, int, int, int] | None = None
        self._until_us = 0

    def read(self, now_us: int, committed: int) -> str | None:
        """A reading of the committed records; the gain of the last scale-up if its time is over."""
        while len(self._readings) > 1 and self._readings[1][0] <= now_us - RATE_US:
            del self._readings[0]
        self._readings.append((now_us, committed))
        return self._close() if self._open is not None and now_us >= self._until_us else None

    def scaled(self, before: int, after: int) -> str | None:
        """The number of processes changes right after a reading; the gain that this ends, if any."""
        if after < before:
            return self._close()
        (then_us, then), (now_us, committed) = self._readings[0], self._readings[-1]
        if self._open is not None:
            self._open = (self._open[0], after, *self._open[2:])
        elif now_us - then_us >= RATE_US // 2:
            rate = (committed - then) * 1_000_000 // (now_us - then_us)
            self._open = (before, after, now_us, committed, rate)
        self._until_us = now_us + PAYBACK_US
        return None

    def _close(self) -> str | None:
        if self._open is None:
            return None
        before, after, since_us, then, rate = self._open
        now_us, committed = self._readings[-1]
        self._open = None
        records = committed - then - rate * (now_us - since_us) // 1_000_000
        within_s = (now_us - since_us) // 1_000_000
        return f"from {before} to {after} processes: {records:+,} records in {within_s} s"


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

    def _say_gain(self, gain: str | None) -> None:
        if gain is not None:
            self._steps.emit_step(SCALE_UP_GAIN, None, gain)

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
                after = self._steps.host.clock.after
                await_available(self._steps, process, lambda: self._unready.discard(name), after)
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
