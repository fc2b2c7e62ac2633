"""Carries out a scenario's steps: who starts, stops, crashes and when; rolling deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from groupstorm.storms.events import StepTaken
from groupstorm.storms.randomness import DRAW_BITS, Stream
from groupstorm.storms.stage import Owner, Process, Stage
from groupstorm.storms.steps import Step
from groupstorm.trace.schema import Source


class Plan:
    """The steps of a scenario on a world's clock. ``pending`` counts what has not come to its end."""

    #: What each kind of step does; what is played may know more of them.
    does: ClassVar[Mapping[str, Callable[[Any, Step], None]]]
    #: Processes are named by this and their place.
    kind = "member"

    def __init__(self, world: Stage) -> None:
        self.world = world
        self.pending = 0
        self._draws = Stream(world.seed, "plan")
        self._drawn = 0
        self._members = 0
        for step in world.scenario.steps:
            self._begin()
            world.clock.at(step.at_ms * 1000, self._take, step)

    # -- bookkeeping -----------------------------------------------------------------------------

    def _begin(self) -> None:
        self.pending += 1

    def _end(self) -> None:
        self.pending -= 1

    def _draw(self) -> int:
        self._drawn += 1
        return self._draws.at(self._drawn)

    def _draw_us(self, setting: str) -> int:
        return self.world.settings.distribution(setting).at(self._draw())

    def _told(self, do: str, member: str | None, detail: str) -> None:
        self.world.trace(Source.WORLD, StepTaken(self.world.group, member, do, detail))

    def _take(self, step: Step) -> None:
        self.does[step.do](self, step)
        self._end()

    def _name(self, index: int) -> str:
        return f"{self.kind}-{index:0{self._digits}d}"

    @property
    def _digits(self) -> int:
        return len(str(self.world.settings.integer("members")))

    def _chosen(self, step: Step) -> list[Process]:
        """The processes that a step names, if they run."""
        indexes = range(self._members) if step.members is None else step.members
        running = self.world.processes
        return [running[self._name(index)] for index in indexes if self._name(index) in running]

    # -- single steps ----------------------------------------------------------------------------

    def _start(self, step: Step) -> None:
        wanted = self.world.settings.integer("members")
        indexes = range(wanted) if step.members is None else step.members
        self._members = wanted
        self._told(step.do, None, f"{len(indexes)} members join within {step.over_ms} ms")
        for index in indexes:
            self._spawn(index, self._name(index), self._draw() * step.over_ms * 1000 >> DRAW_BITS)

    def _add(self, step: Step) -> None:
        self._told(step.do, None, f"{step.count} more processes are started")
        for _ in range(step.count):
            index = self._members
            self._members += 1
            delay_us = self._draw() * step.over_ms * 1000 >> DRAW_BITS
            self._spawn(index, self._name(index), delay_us + self._draw_us("start_ms"))

    def _spawn(
        self,
        index: int,
        name: str,
        delay_us: int,
        on_started: Callable[[Process], None] | None = None,
    ) -> None:
        """A new process under ``name`` polls for the first time after ``delay_us``."""
        self._begin()

        def first_poll() -> None:
            consumer = self.world.new_process(index, name)
            consumer.start()
            if on_started is not None:
                self.world.clock.after(self._draw_us("ready_ms"), on_started, consumer)
            self._end()

        self.world.clock.after(delay_us, first_poll)

    def _stop(self, step: Step) -> None:
        for consumer in self._chosen(step):
            self._terminate(consumer, step.do, None)

    def _restart(self, step: Step) -> None:
        for consumer in self._chosen(step):
            self._terminate(consumer, step.do, self._respawn(consumer))

    def _respawn(self, consumer: Process) -> Callable[[], None]:
        return lambda: self._spawn(consumer.index, consumer.name, self._draw_us("start_ms"))

    def _terminate(self, consumer: Process, do: str, then: Callable[[], None] | None) -> None:
        """SIGTERM; ``then`` when the process is gone."""
        self._begin()
        self._told(do, consumer.name, "SIGTERM")

        def gone() -> None:
            if then is not None:
                then()
            self._end()

        if not consumer.alive:
            gone()
            return
        consumer.on_exit = gone
        self.world.clock.after(self._draw_us("stop_grace_ms"), consumer.stop)

    def _crash(self, step: Step) -> None:
        for consumer in self._chosen(step):
            self._told(step.do, consumer.name, "SIGKILL")
            consumer.crash()

    def _crash_restart(self, step: Step) -> None:
        for consumer in self._chosen(step):
            self._told(step.do, consumer.name, "SIGKILL")
            consumer.crash()
            self._respawn(consumer)()

    def _for_a_while(self, step: Step, begin: Callable[[Owner, int], None]) -> None:
        for process in self._chosen(step):
            consumer = self.world.consumers[process.name]
            self._begin()
            self._told(step.do, consumer.name, f"for {step.for_ms} ms")
            begin(consumer, step.for_ms * 1000)
            self.world.clock.after(step.for_ms * 1000, self._end)

    def _busy(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.standstill.busy(for_us))

    def _pause(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.standstill.pause(for_us))

    def _disconnect(self, step: Step) -> None:
        self._for_a_while(step, lambda consumer, for_us: consumer.disconnect(for_us))

    def _add_partitions(self, step: Step) -> None:
        self._told(step.do, None, f"{step.topic} has {step.partitions} partitions from now on")
        self.world.add_partitions(step.topic, step.partitions)

    # -- rolling deployments ---------------------------------------------------------------------

    def _rolling_restart(self, step: Step) -> None:
        running = sorted(self.world.processes.values(), key=lambda consumer: consumer.index)
        order = self.world.settings.choice("order")
        if order == "reverse":
            running.reverse()
        elif order == "random":
            running.sort(key=lambda _: self._draw())
        self._told(step.do, None, f"{len(running)} processes are replaced, {order}")
        _Rollout(self, running).step()


class _Rollout:
    """Replaces processes as Kubernetes does: never more than max_unavailable missing, nor max_surge too many.

    Without surge a process comes back under its name (StatefulSet; a Deployment's pod in its place);
    with surge its successor has a name of its own and starts first.
    """

    def __init__(self, plan: Plan, old: list[Process]) -> None:
        settings = plan.world.settings
        self._plan = plan
        self._waiting = old
        self._surge = settings.integer("max_surge")
        self._may_miss = settings.integer("max_unavailable")
        self._missing = 0
        self._extra = 0
        self._to_stop: list[Process] = []
        plan._begin()

    def step(self) -> None:
        """Do what the two limits allow now."""
        while self._extra < self._surge and self._waiting:
            self._extra += 1
            old = self._waiting.pop(0)
            self._plan._spawn(old.index, f"{old.name}-next", self._start_us(), self._successor_of(old))
        while self._to_stop:
            self._plan._terminate(self._to_stop.pop(0), "rolling-restart", self._old_gone)
        while not self._surge and self._missing < self._may_miss and self._waiting:
            self._missing += 1
            old = self._waiting.pop(0)
            self._plan._terminate(old, "rolling-restart", self._replace(old))
        if not (self._waiting or self._missing or self._extra or self._to_stop):
            self._plan._end()

    def _start_us(self) -> int:
        return self._plan._draw_us("start_ms")

    def _successor_of(self, old: Process) -> Callable[[Process], None]:
        def started(_: Process) -> None:
            self._to_stop.append(old)
            self.step()

        return started

    def _old_gone(self) -> None:
        self._extra -= 1
        self.step()

    def _replace(self, old: Process) -> Callable[[], None]:
        def started(_: Process) -> None:
            self._missing -= 1
            self.step()

        return lambda: self._plan._spawn(old.index, old.name, self._start_us(), started)


Plan.does = {
    "start": Plan._start,
    "add": Plan._add,
    "stop": Plan._stop,
    "restart": Plan._restart,
    "crash": Plan._crash,
    "crash-restart": Plan._crash_restart,
    "rolling-restart": Plan._rolling_restart,
    "busy": Plan._busy,
    "pause": Plan._pause,
    "disconnect": Plan._disconnect,
    "add-partitions": Plan._add_partitions,
}
