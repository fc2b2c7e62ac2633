"""One run from its first event to its figures."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from groupstorm.assignors.contract import Assignor
from groupstorm.storms.assignor_work import AssignorWork
from groupstorm.storms.ending import Ending, Progress
from groupstorm.storms.events import TasksCreated
from groupstorm.storms.figures import Figures, FiguresAccumulator
from groupstorm.storms.plan import Plan
from groupstorm.storms.scenario import ResolvedScenario
from groupstorm.storms.streams.plan import StreamsPlan
from groupstorm.storms.streams.settings import STREAMS
from groupstorm.storms.streams.world import StreamsWorld
from groupstorm.storms.telling import tell_beginning, tell_end
from groupstorm.storms.world import World
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.schema import Source
from groupstorm.trace.writer import Tee

CHECK_INTERVAL_US = 1_000_000
"""How often, in virtual time, a run looks whether it has come to its end."""

LAST_REBALANCE_US = 600_000_000
"""How long the rebalance that is under way when patience is at an end may take."""


def simulate(
    scenario: ResolvedScenario,
    assignors: Sequence[Assignor],
    sink: TraceSink,
    exact: bool = False,
    progress: Progress | None = None,
    work: AssignorWork | None = None,
) -> Figures:
    """Run ``scenario`` in virtual time; every event goes to ``sink``. Returns the run's figures.

    ``exact``: every heartbeat is simulated; the trace is the same, only slower in coming. ``work`` adds
    up what the assignors cost.
    """
    accumulator = FiguresAccumulator()
    world, plan = _stage(scenario, assignors, Tee(sink, accumulator), exact, work)
    with _rare_garbage_collection():
        _run_to_the_end(world, plan, progress)
    _close(world)
    return accumulator.figures()


def _stage(
    scenario: ResolvedScenario,
    assignors: Sequence[Assignor],
    sink: TraceSink,
    exact: bool,
    work: AssignorWork | None,
) -> tuple[World, Plan]:
    """The world that a scenario needs, and its steps on that world's clock."""
    if scenario.settings.choice("application") == STREAMS:
        streams = StreamsWorld(scenario, sink, exact, work)
        tell_beginning(streams)
        streams.trace(Source.WORLD, TasksCreated(streams.group, tuple(streams.topology.names)))
        return streams, StreamsPlan(streams)
    world = World(scenario, assignors, sink, exact, work)
    tell_beginning(world)
    return world, Plan(world)


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """A storm makes millions of objects that live long or die without cycles: look for cycles rarely."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(10_000_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _run_to_the_end(world: World, plan: Plan, progress: Progress | None) -> None:
    """Until `Ending` says so; then the tail."""
    ending = Ending(world, plan, progress)
    while True:
        world.run_until(world.clock.now_us + CHECK_INTERVAL_US)
        if ending.is_reached():
            break
    if world.cease():
        given_up_us = world.clock.now_us
        while not world.settled and world.clock.now_us - given_up_us < LAST_REBALANCE_US:
            world.run_until(world.clock.now_us + CHECK_INTERVAL_US)
    world.run_until(world.clock.now_us + ending.tail_us)


def _close(world: World) -> None:
    """The sums and the verdicts, behind the last event of the group."""
    world.finish()
    for consumer in tuple(world.consumers.values()):
        consumer.pulse.stop()
    tell_end(world)
    world.hand_over()
