"""One run from its first event to its figures."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from groupstorm.assignors.contract import Assignor
from groupstorm.assignors.userdata import TopicPartition
from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.accumulator import WHOLE
from groupstorm.history.causes import OF_A_RECORD
from groupstorm.history.reasons import GapReasons
from groupstorm.storms.checks.settling import MOST_ROUNDS, OBSERVED_US, Settling
from groupstorm.storms.checks.verdicts import SETTLES as GROUP_SETTLES
from groupstorm.storms.runs.step_runner import (
    EndCondition,
    Progress,
    StepRunner,
    emit_run_end,
    emit_run_start,
)
from groupstorm.storms.runs.steps_of_run import consumers_of
from groupstorm.storms.scenario.consistency import is_shared
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.scenario.setting_names import STREAMS
from groupstorm.storms.scenario.steps import Step, refuse_chaos_steps
from groupstorm.storms.world.environment import AssignorWork, Environment
from groupstorm.storms.world.world import PlainConsumers, Pods, World
from groupstorm.trace.events.scenario import TasksCreated
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import Tee

CHECK_INTERVAL_US = 1_000_000
"""The interval, in virtual time, at which a run checks whether it is over."""

LAST_REBALANCE_US = 600_000_000
"""A rebalance or a pause that is under way when `settle_timeout_ms` has passed may take so long."""


def simulate(
    scenario: ResolvedScenario,
    assignors: Sequence[Assignor],
    sink: TraceSink,
    exact: bool = False,
    progress: Progress | None = None,
    work: AssignorWork | None = None,
    gaps: GapReasons | None = None,
) -> Figures:
    """Run ``scenario`` in virtual time; every event goes to ``sink``. Returns the run's figures.

    ``exact``: every heartbeat is simulated; the trace is the same but takes longer. ``work`` adds up what
    the assignors cost, ``gaps`` what un-owned time was spent on. Raises InputError for a step that is not of
    virtual time, and if the run ends before its figures count.
    """
    refuse_chaos_steps(scenario.steps)
    accumulator = FiguresAccumulator(listener=gaps)
    world, steps = _begin(Environment(scenario, Tee(sink, accumulator), exact, work), assignors)
    with OBJECT_CYCLES.rarely_looked_for():
        _run_to_the_end(world, steps, progress)
    WHOLE.check(scenario.name, scenario.figures_from_ms * 1000, world.clock.now_us)
    world.finish()
    emit_run_end(world)
    world.close_trace()
    totals = accumulator.totals()
    figures = totals.figures()
    world.invariants.figures_made(world.clock.now_us, figures)
    return replace(totals, invariants=world.invariants.verdicts).figures()


def _begin(environment: Environment, assignors: Sequence[Assignor]) -> tuple[World, StepRunner]:
    """The world with the scenario's processes, and the steps on its clock."""
    if environment.settings.choice("application") == STREAMS:
        # Storms of plain consumers start without the modules of Kafka Streams.
        from groupstorm.storms.streams.application import StreamsApplication
        from groupstorm.storms.streams.instances import StreamsInstances, StreamsSteps

        application = StreamsApplication(environment)
        instances = StreamsInstances(application)
        world = World(environment, instances)
        emit_run_start(world)
        world.trace(Source.WORLD, TasksCreated(world.group, tuple(application.topology.names)))
        steps = StepRunner(world, "instance")
        StreamsSteps(steps, instances)
        return world, steps
    if is_shared(environment.settings):
        # nor does any other storm with those of share groups
        from groupstorm.storms.share.world import ShareConsumers, ShareWorld

        share_world = ShareWorld(environment, ShareConsumers(environment))
        emit_run_start(share_world)
        return share_world, StepRunner(share_world)
    each = environment.settings.integer("members_per_pod")
    plain = PlainConsumers(environment, assignors) if each == 1 else Pods(environment, assignors, each)
    world = World(environment, plain)
    emit_run_start(world)
    steps = StepRunner(world, "member" if each == 1 else "pod")
    WorldSteps(steps, world)
    return world, steps


def _run_to_the_end(world: World, steps: StepRunner, progress: Progress | None) -> None:
    """Run until `EndCondition` is met, then the tail. A group that has not settled by then is observed on.

    A step may have its effect during the tail only: a session expires although its member is back. Then the
    run goes on.
    """
    end = EndCondition(world, steps, progress)
    settling = Settling(world, world.rounds)
    _run_until_met(world, end, settling)
    followed_up = world.give_up_follow_ups()
    if followed_up:
        _run_until_settled(world)
    _wait_for_pauses(world, end)
    world.run_until(world.clock.now_us + end.tail_us)
    while end.at_rest and not end.timed_out and not world.settled:
        _run_until_met(world, end, settling)
        world.run_until(world.clock.now_us + end.tail_us)
    _wait_for_pauses(world, end)
    if not end.at_rest and not followed_up:
        _observe(world, end, settling)


def _wait_for_pauses(world: World, end: EndCondition) -> None:
    """Go on until no process stands still: a group with one has not settled, whatever its settings are."""
    if world.has_pauses:
        _run_until_settled(world)
        if not end.at_rest:
            end.is_met()


def _run_until_settled(world: World) -> None:
    given_up_us = world.clock.now_us + LAST_REBALANCE_US
    while not world.settled and world.clock.now_us < given_up_us:
        world.run_until(world.clock.now_us + CHECK_INTERVAL_US)


def _run_until_met(world: World, end: EndCondition, settling: Settling) -> None:
    while True:
        world.run_until(world.clock.now_us + CHECK_INTERVAL_US)
        done_us = end.steps_done_us
        is_met = end.is_met()
        if end.steps_done_us != done_us:
            settling.steps_done(world.clock.now_us)
        if is_met:
            return


def _observe(world: World, end: EndCondition, settling: Settling) -> None:
    """Find out whether a group whose time to settle is over can settle at all."""
    if not settling.is_worth_observing(world.clock.now_us):
        return
    assert end.steps_done_us is not None
    until_us = end.steps_done_us + OBSERVED_US
    most_rounds = len(world.rounds.completed_us) + MOST_ROUNDS
    rested_us = end.rested_us
    while not end.at_rest and world.clock.now_us < until_us and len(world.rounds.completed_us) < most_rounds:
        world.run_until(world.clock.now_us + CHECK_INTERVAL_US)
        end.is_met()
    if end.at_rest and rested_us and world.clock.now_us - rested_us < end.settle_timeout_us:
        return  # something that goes on, as pauses do, disturbed it at the end
    sentence = settling.sentence(end.at_rest, world.clock.now_us)
    if sentence is not None and not world.left_behind:  # else the group waits for those
        world.invariants.violated(GROUP_SETTLES, sentence)


#: During a run (`gc.set_threshold`).
_THRESHOLDS: Final = (10_000_000, 50, 1000)

#: The number of objects that runs may leave behind: about 50 MB.
_LEFT_BEHIND_MAX: Final = 300_000


class ObjectCycles:
    """A storm makes millions of objects that live long or die without cycles: look for cycles rarely.

    The objects that a run leaves behind are full of cycles, and Python looks at old objects so rarely that a
    process with many small runs would keep them all: if they are many, the next run first looks at all.
    """

    def __init__(self) -> None:
        self._left_behind = 0

    @contextmanager
    def rarely_looked_for(self) -> Iterator[None]:
        """In the block: the block is a run."""
        if self._left_behind > _LEFT_BEHIND_MAX:
            gc.collect()
            self._left_behind = 0
        before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        try:
            yield
        finally:
            young, looked, _ = gc.get_count()
            self._left_behind += young + looked * _THRESHOLDS[0]
            gc.freeze()  # with unfreeze: all is old now, and restored thresholds look through none of it
            gc.unfreeze()
            gc.set_threshold(*before)


#: The `ObjectCycles` of this process.
OBJECT_CYCLES: Final = ObjectCycles()


LOOK_US: Final = 500_000
"""The interval at which the world looks whether an owner has come to a record that kills its process."""


class WorldSteps:
    """Adds its steps to those of ``runner``."""

    def __init__(self, runner: StepRunner, world: World) -> None:
        self._runner = runner
        self._world = world
        runner.handlers |= {
            "create-topic": self._create_topic,
            "delete-topic": self._delete_topic,
            "coordinator-failover": self._coordinator_failover,
            "partition": self._partition,
            "slow-appends": self._slow_appends,
            "failing-appends": self._failing_appends,
        }
        self._fatal = world.slow_records.fatal if world.slow_records is not None else {}
        #: (partition, name of the owner) -> since when it has worked on the fatal record.
        self._since_us: dict[tuple[TopicPartition, str], int] = {}
        if self._fatal:
            world.clock.after(LOOK_US, self._look_for_deaths)

    def _look_for_deaths(self) -> None:
        """Kill each owner that has worked on a fatal record for its time."""
        now_us, records = self._world.clock.now_us, self._world.records
        reached: dict[tuple[TopicPartition, str], int] = {}
        for partition, (offset, work_us) in self._fatal.items():
            if records.logs.end(partition, now_us) <= offset:
                continue
            for work in tuple(records.holders.get(partition, ())):
                if work.position(partition, now_us) != offset:
                    continue
                key = partition, work.owner
                reached[key] = self._since_us.get(key, now_us)
                if now_us - reached[key] >= work_us:
                    del reached[key]
                    self._die_of_a_record(work.owner, partition)
        self._since_us = reached
        self._world.clock.after(LOOK_US, self._look_for_deaths)

    def _die_of_a_record(self, name: str, partition: TopicPartition) -> None:
        process = self._world.processes.get(name) or self._world.processes.get(name.rpartition("-")[0])
        if process is not None:
            self._runner.emit_step("crash", name, f"{OF_A_RECORD} of {partition}")
            process.crash()

    def _create_topic(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.topic} is created with {step.partitions} partitions")
        self._world.add_partitions(step.topic, step.partitions)
        self._wait_for_metadata()

    def _delete_topic(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.topic} is deleted")
        self._world.delete_topic(step.topic)
        self._wait_for_metadata()

    def _coordinator_failover(self, step: Step) -> None:
        """All connections to the coordinator break; clients ask for the new one every retry.backoff.ms."""
        until_us = self._world.clock.now_us + step.for_ms * 1000
        self._runner.emit_step(step.do, None, f"no coordinator for {step.for_ms} ms")
        self._runner.begin()
        self._world.fail_over(until_us, self._runner.delay_within_us)
        self._world.clock.at(until_us + 1, self._runner.end)

    def _partition(self, step: Step) -> None:
        """Nothing is lost: TCP sends again what the network has swallowed."""
        for process in self._runner.chosen(step):
            for name in [consumer.name for consumer in consumers_of(self._world, process)]:
                self._runner.emit_step(step.do, name, f"no {step.direction} for {step.for_ms} ms")
                self._world.member(name).faults.partition(step.for_ms * 1000, step.direction)
        self._wait(step)

    def _slow_appends(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"{step.append_ms} ms each, for {step.for_ms} ms")
        self._world.slow_appends(self._world.clock.now_us + step.for_ms * 1000, step.append_ms)
        self._wait(step)

    def _failing_appends(self, step: Step) -> None:
        self._runner.emit_step(step.do, None, f"for {step.for_ms} ms")
        self._world.fail_appends(self._world.clock.now_us + step.for_ms * 1000)
        self._wait(step)

    def _wait(self, step: Step) -> None:
        """The run goes on until the step is over."""
        self._runner.begin()
        self._world.clock.after(step.for_ms * 1000 + 1, self._runner.end)

    def _wait_for_metadata(self) -> None:
        """The run goes on until every member has refreshed its metadata once."""
        clients = self._world.settings.of_profiles()
        age_ms = max(client.integer("metadata.max.age.ms") for client in clients)
        self._runner.begin()
        self._world.clock.after(age_ms * 1000 + 1, self._runner.end)
