"""One run of a test in a simulation: from a schedule to what came of it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from groupstorm.report.story import Selection, story
from groupstorm.simulation.broker import SimulatedBroker
from groupstorm.simulation.clock import virtual_clocks
from groupstorm.simulation.errors import Stuck
from groupstorm.simulation.loop import MICROSECONDS, VirtualLoop
from groupstorm.simulation.network import Network
from groupstorm.simulation.schedule import Latencies, Schedule
from groupstorm.simulation.world import World
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.testing.arguments import Setting, Topics

#: So many nested blocks with an await in their ``finally`` are closed.
_CLOSED_AT_MOST = 50

#: A test: a coroutine function of the world.
Test = Callable[[World], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all schedules of a test have in common.

    ``latency_us``: the shortest and the longest of an ordinary message; ``most_us``: the virtual time after
    which a test has gone wrong.
    """

    topics: Topics | None = None
    settings: Mapping[str, Setting] | None = None
    brokers: int = 1
    latency_us: tuple[int, int] = (200, 5_000)
    most_us: int = 2 * 3600 * MICROSECONDS


@dataclass(frozen=True)
class Run:
    """The result of one schedule. ``trace``: rows of the coordinator (docs/trace.md); ``told``: sentences
    on instances, each with its microseconds; ``problem``: the exception that the test has raised."""

    schedule: Schedule
    end_us: int
    trace: Sequence[Mapping[str, Any]]
    told: Sequence[tuple[int, str]]
    problem: BaseException | None = field(compare=False)

    def story(self) -> list[str]:
        """Return the events in order: the instances', and the groups' in the words of `groupstorm trace`."""
        groups = {row["group"] for row in self.trace}
        width = max(map(len, groups)) if len(groups) > 1 else 0
        lines = [(at_us, 0, f"{at_us / MICROSECONDS:12.6f} s  {sentence}") for at_us, sentence in self.told]
        at_us = 0

        def rows() -> Iterator[Mapping[str, Any]]:
            nonlocal at_us
            for row in self.trace:
                at_us = row["time_us"]
                yield row

        lines += [(at_us, 1, line) for line in story(rows(), Selection(group_width=width))]
        return [line for _, _, line in sorted(lines, key=lambda one: one[:2])]


def run_once(test: Test, schedule: Schedule, options: Options) -> Run:
    """Run the test under the schedule; what it raises becomes the run's ``problem``."""
    ties = Stream(schedule.seed, "ties")
    loop = VirtualLoop((lambda number: number) if schedule.is_calm else ties.at)
    loop.most_us = options.most_us
    with virtual_clocks(partial(getattr, loop, "now_us"), schedule.seed):
        try:
            world = loop.run_until_complete(_begun(loop, schedule, options))
            try:
                problem = loop.run_until_complete(_problem(test, world))
            except Stuck as found:
                problem = found
            return Run(schedule, loop.now_us, world.broker.trace, tuple(world.told), problem)
        finally:
            _dispose(loop)


async def _begun(loop: VirtualLoop, schedule: Schedule, options: Options) -> World:
    """A world whose brokers listen, and in which the schedule's failures will happen."""
    network = loop.network = Network(loop, Latencies(schedule, *options.latency_us))
    broker = SimulatedBroker(options.topics, options.settings, brokers=options.brokers)
    await broker.begin()
    world = World(loop, network, broker)
    for one in schedule.happenings:
        loop.call_at_us(one.at_us, world.happen, one, context=contextvars.Context())
    return world


async def _problem(test: Test, world: World) -> BaseException | None:
    """Run the test, and return the exception that it raises; None if it passes."""
    try:
        await test(world)
        world.raise_failure()
    except (Exception, asyncio.CancelledError) as found:  # noqa: BLE001  # an error of a test is its result
        return found
    return None


def _dispose(loop: VirtualLoop) -> None:
    """Close the coroutines that are left without letting their tasks complain, then the loop."""
    # clients that were killed, or that the test has left open, complain when they are collected
    loop.set_exception_handler(lambda _loop, _context: None)
    ended: set[asyncio.Task[Any]] = set()
    asyncio._set_running_loop(loop)  # for code that starts tasks when it is closed
    while left := asyncio.all_tasks(loop) - ended:  # which may start others
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            _end(task.get_coro())
        ended |= left
    asyncio._set_running_loop(None)
    loop.close()


def _end(coroutine: Any) -> None:
    """Close a coroutine that will never go on. Code that awaits in ``finally`` refuses the first time, and
    Python would ask it again later, when the loop is closed."""
    for _ in range(_CLOSED_AT_MOST):
        try:
            coroutine.close()
        except Exception:  # noqa: BLE001  # the test is over: what instances raise while they vanish is no result
            continue
        return
