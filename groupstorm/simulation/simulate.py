"""`simulate`: run a test under the schedules of many seeds; shorten the first schedule that fails."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from groupstorm.problems import InputError
from groupstorm.report.story import Selection, story
from groupstorm.simulation.clock import virtual_clocks
from groupstorm.simulation.loop import MICROSECONDS, Stuck, VirtualLoop
from groupstorm.simulation.network import Network
from groupstorm.simulation.schedule import Kind, Latencies, Schedule, drawn, parse
from groupstorm.simulation.world import SimulatedBroker, World
from groupstorm.storms.runs.worker_processes import end_with_parent
from groupstorm.storms.scenario.randomness import Stream
from groupstorm.testing.arguments import Setting, Topics, number, seconds
from groupstorm.trace.events.coordinator import OffsetsCommitted
from groupstorm.trace.rows import event_name

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
    on instances, each with its microseconds; ``problem``: the exception that the test has raised.
    ``failures``: how many the schedule has, in the result of `simulate` those of all schedules; ``at_work``:
    how many of them came while a group had records left."""

    schedule: Schedule
    end_us: int
    trace: Sequence[Mapping[str, Any]] = field(repr=False)
    told: Sequence[tuple[int, str]] = field(repr=False)
    problem: BaseException | None = field(compare=False)
    failures: int
    at_work: int

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
            except (Stuck, SystemExit) as found:
                problem = found
            counts = len(schedule.happenings), world.failures_at_work
            return Run(schedule, loop.now_us, world.broker.trace, tuple(world.told), problem, *counts)
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
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as found:  # noqa: BLE001  # an error of a test is its result, that of pytest.fail, too
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
    """Close a coroutine that will never go on, after those that it awaits. Code that awaits in ``finally``
    refuses the first time, and Python would ask it again later, when the loop is closed."""
    for _ in range(_CLOSED_AT_MOST):
        if asyncio.iscoroutine(awaited := getattr(coroutine, "cr_await", None)):
            _end(awaited)
        try:
            coroutine.close()
        except (Exception, BaseExceptionGroup):  # noqa: BLE001  # the test is over: what instances raise while
            continue  # they vanish is no result; a TaskGroup raises a group of GeneratorExit
        return


#: Failures are injected within so many virtual seconds from the start at most if no group commits an offset.
WITHIN_S = 120.0
#: A test has gone wrong if it goes on after so many virtual seconds, unless it says otherwise.
LIMIT_S = 7200.0
#: The largest seed, and the largest number of schedules.
MOST_SEED = 10**15
#: The exceptions by which pytest and unittest leave a test that does not fail.
_GIVES_UP = ("Skipped", "XFailed", "SkipTest")
#: The last lines of a story that a message has.
_STORY_LINES = 60


class ScheduleFailed(AssertionError):
    """The test fails under a schedule; ``__cause__`` is the error of the test.

    ``schedule``: the shortest schedule that was found to fail; its text is what ``replay`` takes.
    """

    def __init__(self, message: str, seed: int, schedule: Schedule) -> None:
        super().__init__(message)
        self.seed = seed
        self.schedule = schedule


def simulate(
    test: Test,
    *,
    seed: int = 0,
    schedules: int = 1,
    failures: Collection[Kind | str] = tuple(Kind),
    within_s: float | None = None,
    limit_s: float = LIMIT_S,
    topics: Topics | None = None,
    settings: Mapping[str, Setting] | None = None,
    brokers: int = 1,
    processes: int | None = None,
    replay: str | None = None,
) -> Run:
    """Run ``test``, a coroutine function of the `World`, under the schedules of ``schedules`` seeds from
    ``seed`` on.

    ``failures``: the kinds of failures that the seeds inject, in the first ``within_s`` virtual seconds;
    none: only latencies and the order of equal timers differ. ``within_s``: None: as long as the groups have
    work in a run without failures, which comes first. ``limit_s``: a test that goes on after so many virtual
    seconds fails. ``topics``, ``settings``, ``brokers``: as of `groupstorm.broker`. ``processes``: how many
    run at the same time; None: one per core. ``replay``: the text of one schedule, as a failure prints it,
    instead of those of the seeds.

    Returns the run of the last schedule. Warns if several schedules have failures, and none came while a
    group had records left. Raises ScheduleFailed for the first seed that fails, and InputError.
    """
    number("seed", seed, 0, MOST_SEED)
    number("schedules", schedules, 1, MOST_SEED)
    kinds = _kinds(failures)
    given_us = None if within_s is None else round(seconds("within_s", within_s) * MICROSECONDS)
    limit_us = round(seconds("limit_s", limit_s) * MICROSECONDS)
    options = Options(topics, settings, brokers, most_us=limit_us)
    if replay is not None:
        return _checked(test, parse(replay), options)
    within_us = _work_us(test, options) if given_us is None and kinds else given_us or 0
    seeds = range(seed, seed + schedules)
    counts = multiprocessing.Array("q", 2)  # of the processes, too

    def fails(one: int) -> bool:
        run = run_once(test, drawn(one, kinds, within_us), options)
        with counts.get_lock():
            counts[0] += run.failures
            counts[1] += run.at_work
        return run.problem is not None

    failing = None
    if schedules > 1:
        cores = os.cpu_count() or 1
        chosen = cores if processes is None else number("processes", processes, 1, 1000)
        failing = first_failing(fails, seeds, chosen)
    last = drawn(seeds[-1] if failing is None else failing, kinds, within_us)
    run = _checked(test, last, options)
    if failing is not None:
        raise InputError(
            f"seed={failing}: the test has failed in one process and not in another: it depends on something"
            " outside of the simulation, for example on the order of a set of texts (set PYTHONHASHSEED=0),"
            " on datetime.now or on what an earlier schedule has left behind"
        )
    if schedules == 1:
        return run
    if counts[0] and not counts[1]:
        warnings.warn(
            f"within_s: {within_us / MICROSECONDS:g}: no failure came while a group had records left, of"
            f" {counts[0]} in {schedules} schedules: expected a shorter time, or more records",
            stacklevel=2,
        )
    return replace(run, failures=counts[0], at_work=counts[1])


def _work_us(test: Test, options: Options) -> int:
    """The time in which failures meet work: in a run without failures, until the last commit that goes beyond
    all before it; a consumer may commit again and again what it has committed."""
    run = run_once(test, Schedule(0), options)
    found_us, reached = min(run.end_us, round(WITHIN_S * MICROSECONDS)), dict[tuple[str, str], int]()
    for row in run.trace:
        if row["event"] == event_name(OffsetsCommitted) and "error" not in row:
            for partition, offset in zip(row["partitions"], row["positions"], strict=True):
                if offset > reached.get((row["group"], partition), 0):
                    reached[row["group"], partition], found_us = offset, row["time_us"]
    return found_us


def _kinds(failures: Collection[Kind | str]) -> list[Kind]:
    known = list(Kind)
    for one in failures:
        if one not in known:
            raise InputError(f"failures: {one!r}: expected some of {', '.join(known)}")
    return [Kind(one) for one in failures]


def _checked(test: Test, schedule: Schedule, options: Options) -> Run:
    """Run the schedule. Raises ScheduleFailed, with the shortest schedule that fails, too."""
    run = run_once(test, schedule, options)
    if run.problem is None:
        return run
    if isinstance(run.problem, InputError) or type(run.problem).__name__ in _GIVES_UP:
        raise run.problem  # the test is wrong under every schedule, or gives up
    shortest = shorten(test, run, options)
    raise ScheduleFailed(_message(run, shortest), schedule.seed, shortest.schedule) from shortest.problem


def shorten(test: Test, failed: Run, options: Options) -> Run:
    """Leave out of a failing schedule what it does not need to fail with an error of the same type."""
    simpler = failed.schedule.simpler()
    while (schedule := next(simpler, None)) is not None:
        run = run_once(test, schedule, options)
        if type(run.problem) is type(failed.problem):
            failed = run
            simpler = failed.schedule.simpler()
    return failed


def _message(failed: Run, shortest: Run) -> str:
    problem = shortest.problem
    text = f"{type(problem).__name__}: {problem}"
    story = shortest.story()
    omitted = len(story) - _STORY_LINES
    lines = [
        f"seed {failed.schedule.seed} fails after {shortest.end_us / MICROSECONDS:.6f} virtual s: {text}",
        f"the shortest schedule that fails: {shortest.schedule}",
        "run it alone with simulate(test, replay=...); its story:",
        *([f"(the first {omitted} lines are left out)"] if omitted > 0 else []),
        *story[-_STORY_LINES:],
    ]
    return "\n".join(lines)


#: Whether the schedule of a seed fails.
Fails = Callable[[int], bool]


def first_failing(fails: Fails, seeds: range, processes: int) -> int | None:
    """The smallest seed that fails; None if none does.

    The processes are forked, because a test is a function that need not be importable. Without fork
    (Windows), and for one process, this process runs the seeds. Raises RuntimeError if a process ends early.
    """
    count = min(processes, len(seeds))
    if count <= 1 or not hasattr(os, "fork"):
        return next((seed for seed in seeds if fails(seed)), None)
    context = multiprocessing.get_context("fork")
    found = context.Value("q", seeds.stop)
    workers = [
        context.Process(target=_work, args=(fails, seeds[first::count], found), daemon=True)
        for first in range(count)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.kill()
                worker.join()
    ended = [worker.exitcode for worker in workers if worker.exitcode != 0]
    if ended:
        raise RuntimeError(f"a process that ran schedules has ended with exit code {ended[0]}")
    return found.value if found.value < seeds.stop else None


def _work(fails: Fails, seeds: range, found: Any) -> None:
    """In a worker: the smallest of its seeds that fails, up to the smallest that any worker has found."""
    end_with_parent()
    for seed in seeds:
        if seed > found.value:
            return
        if fails(seed):
            with found.get_lock():
                found.value = min(found.value, seed)
            return
