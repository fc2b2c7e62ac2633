"""The base of all rollouts: pods that start, become available and stop, a progress deadline, an end.

Source of the deadline: `DeploymentProgressing` in pkg/controller/deployment/util/deployment_util.go. A pod
that starts, becomes ready or becomes available is progress, and so is an old pod that stops. Without any
until the deadline the controller sets a condition, and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest

from groupstorm.storms.runs.steps_of_run import Process, StepsOfRun, partitions_owned
from groupstorm.storms.scenario.setting_names import ASSIGNED, RUNS
from groupstorm.storms.scenario.steps import Step

#: Causes of `StepTaken`: a rollout is complete, or has made no progress until its deadline.
COMPLETE, STUCK = "rollout-complete", "rollout-stuck"

#: From the end of a process to the first poll() of its successor, and from there until that is available, in
#: milliseconds; None: drawn.
Durations = tuple[int | None, int | None]

#: Calls a function so many microseconds later.
After = Callable[[int, Callable[[], None]], object]

_REVISION = re.compile(r"-v\d+$")

#: The period of a probe that looks whether the process owns a partition (`ready_when: assigned`).
PROBE_INTERVAL_US = 1_000_000

#: A run waits so long for progress of a rollout (Kubernetes' default deadline), or until the rollout's own
#: deadline if that is later.
STANDS_US = 600_000_000


def time_to_available_us(steps: StepsOfRun) -> int:
    """Draw the time from the event of `ready_when` until the pod is available: probe, minReadySeconds."""
    return steps.duration_us("ready_ms") + steps.host.settings.integer("min_ready_ms") * 1000


def await_available(
    steps: StepsOfRun, process: Process, then: Callable[[], None], after: After, ready_us: int | None = None
) -> None:
    """Call ``then`` when ``process``, which has just polled for the first time, is available.

    Never if it is gone before. ``after``: of the clock, or in place of it. ``ready_us``: if it is not drawn.
    """
    host = steps.host

    def ready_later() -> None:
        after(time_to_available_us(steps) if ready_us is None else ready_us, available)

    def available() -> None:
        if process.alive:
            then()

    def probe() -> None:
        if partitions_owned(host, process):
            ready_later()
        elif process.alive:
            host.clock.after(PROBE_INTERVAL_US, probe)

    if host.settings.choice("ready_when") == ASSIGNED:
        probe()
    else:
        ready_later()


def processes_in_order(steps: StepsOfRun) -> list[Process]:
    """The processes in the order (`order`) in which a rollout replaces them."""
    running = steps.pods()
    order = steps.host.settings.choice("order")
    if order == "reverse":
        running.reverse()
    elif order == "random":
        running = [running[place] for place in steps.random_order(len(running))]
    return running


def new_pod_name(old: str, revision: int) -> str:
    """The name of the pod of ``revision`` that takes the place of the pod ``old``: member-07-v2."""
    return f"{_REVISION.sub('', old)}-v{revision}"


def given_durations(step: Step, old: Sequence[Process]) -> dict[int, Durations]:
    """The durations that a step gives, for the places of the processes ``old`` in their order."""
    both = zip_longest(step.start_ms, step.ready_ms)
    return {process.index: durations for process, durations in zip(old, both, strict=False)}


class Rollout:
    """A rollout under way. ``do``: the kind of its step, under which its actions are emitted.

    ``given``: how long the successors of some processes take, by the places of these; of others it is drawn.
    """

    def __init__(self, steps: StepsOfRun, do: str, given: Mapping[int, Durations] | None = None) -> None:
        self.steps = steps
        self.do = do
        self.given = given or {}
        self.done = False
        #: The names of pods that have not polled yet.
        self._starts: set[str] = set()
        #: The pods that have started and are not available yet, by name.
        self.unready: dict[str, Process] = {}
        self._begun_us = self._progress_us = steps.host.clock.now_us
        self._deadline_us = steps.host.settings.integer("progress_deadline_ms") * 1000
        self._reported = False
        #: Whether the run waits for the rollout: it has not stood still for too long.
        self._is_awaited = True
        steps.begin()
        steps.host.clock.after(self._deadline_us, self._check_progress)

    # -- pods ------------------------------------------------------------------------------------

    def start_pod(self, index: int, name: str, on_available: Callable[[], None]) -> None:
        """Start a pod; call ``on_available`` when it is ready and minReadySeconds have passed."""

        start_ms, ready_ms = self.given.get(index, (None, None))
        was_available = False

        def started(process: Process) -> None:
            self._starts.discard(name)
            if was_available:  # it has failed since then
                return
            self.unready[name] = process
            ready_us = None if ready_ms is None else ready_ms * 1000
            await_available(self.steps, process, available, partial(self._after, process), ready_us)

        def available() -> None:
            nonlocal was_available
            if was_available:
                return
            was_available = True
            self.unready.pop(name, None)
            self.progressed()
            on_available()

        def is_wanted() -> bool:
            return name in self._starts

        self._starts.add(name)
        start_us = self.steps.duration_us("start_ms") if start_ms is None else start_ms * 1000
        if self.steps.host.settings.choice("ready_when") == RUNS:
            self.steps.spawn(index, name, start_us, is_wanted=is_wanted)
            self._after(None, time_to_available_us(self.steps), available)
        else:
            self.steps.spawn(index, name, start_us, started, is_wanted)

    def _after(self, process: Process | None, us: int, available: Callable[[], None]) -> None:
        """Call ``available`` after ``us``, and the run waits; ``process`` is ready minReadySeconds before."""
        clock, min_ready_us = self.steps.host.clock, self.steps.host.settings.integer("min_ready_ms") * 1000

        def ready() -> None:
            if process is None or process.alive:
                self.progressed()

        if 0 < min_ready_us <= us:
            clock.after(us - min_ready_us, ready)
        self.steps.begin()
        clock.after(us, available)
        clock.after(us, self.steps.end)

    def stop_pod(self, name: str, on_gone: Callable[[], None]) -> None:
        """Stop a pod; one that has not polled yet never does."""
        self.unready.pop(name, None)
        process = self.steps.process(name)
        if process is not None:
            self.steps.terminate(process, self.do, on_gone)
            return
        if name in self._starts:
            self._starts.remove(name)
            self.steps.emit_step(self.do, name, "SIGTERM before its first poll()")
        on_gone()

    # -- progress --------------------------------------------------------------------------------

    def progressed(self) -> None:
        """A pod was started or stopped, or became ready or available. A pause is not over because of that."""
        self._progress_us = max(self._progress_us, self.steps.host.clock.now_us)
        if self.done:
            return
        if not self._is_awaited:
            self._is_awaited = True
            self.steps.begin()
        if self._reported:
            self._reported = False
            self.steps.host.clock.after(self._deadline_us, self._check_progress)

    def pause(self, duration_us: int, detail: str, then: Callable[[], None]) -> None:
        """Pause, then call ``then``. Kubernetes does not expect progress of a paused rollout."""
        self.steps.emit_step(self.do, None, detail)
        self._progress_us = self.steps.host.clock.now_us + duration_us
        self.steps.host.clock.after(duration_us, then)

    def begin_again(self, do: str, given: Mapping[int, Durations]) -> None:
        """A rollout of another revision takes the place of this one, which is not complete."""
        self.do, self.given = do, given
        self._begun_us = self.steps.host.clock.now_us
        self.progressed()

    def complete(self) -> None:
        """All pods are replaced."""
        if self.done:
            return
        self.done = True
        took_us = self.steps.host.clock.now_us - self._begun_us
        self.steps.emit_step(COMPLETE, None, f"{self.do}: after {took_us / 1e6:,.1f} s")
        self._let_run_end()

    def _check_progress(self) -> None:
        if self.done or self._reported:
            return
        due_us = self._progress_us + self._deadline_us
        if self.steps.host.clock.now_us < due_us:
            self.steps.host.clock.at(due_us, self._check_progress)
            return
        self._reported = True
        self.steps.emit_step(STUCK, None, f"{self.do}: {self._reason()}")
        self.steps.host.clock.after(max(0, STANDS_US - self._deadline_us), self._give_up)

    def _give_up(self) -> None:
        stands_us = self._progress_us + max(STANDS_US, self._deadline_us)
        if self._reported and not self.done and self.steps.host.clock.now_us >= stands_us:
            self._let_run_end()

    def _let_run_end(self) -> None:
        """The run waits no more for this rollout."""
        if self._is_awaited:
            self._is_awaited = False
            self.steps.end()

    def _reason(self) -> str:
        """The sentence on why nothing has happened for so long."""
        host = self.steps.host
        waits = f"no progress for {self._deadline_us / 1e6:,.0f} s"
        without = [name for name, process in self.unready.items() if not partitions_owned(host, process)]
        if without and host.settings.choice("ready_when") == ASSIGNED:
            others = len(host.processes) - len(without)
            old = "the old pod runs" if others == 1 else f"{others} others run"
            partitions = "1 partition" if len(host.partitions) == 1 else f"{len(host.partitions)} partitions"
            return (
                f"{waits}: {_some(without)} gets no partition while {old} ({partitions} in all), "
                "and so never gets ready"
            )
        if self.unready:
            return f"{waits}: {_some(list(self.unready))} is not ready"
        return waits


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"each of {len(names)} new pods ({names[0]}, ...)"
