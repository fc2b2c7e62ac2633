"""The runs of a sweep: which there are, one run for its figures alone, all of them on this machine's cores.

No trace is written: a run's figures come from its events as they happen.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from groupstorm.assignors.registry import is_plug_in
from groupstorm.figures import Figures
from groupstorm.problems import InputError
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.several import cores
from groupstorm.storms.runs.sweep import Outcome, Point, Sweep, check_sweep
from groupstorm.storms.runs.worker_processes import results_as_they_come
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.world.member_settings import strategies
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.writer import NullSink

#: A run of a sweep: the place of its point among the points, and its seed.
Key = tuple[int, int]

#: What a run gives: its figures, or why its settings are refused.
Result = Figures | str


@dataclass(frozen=True, slots=True)
class Order:
    """One run to do, in values that travel to another process. ``checksum``: of its point's scenario."""

    sweep: Sweep
    point: Point
    key: Key
    checksum: str


class Plan:
    """The runs of some points of a sweep, and the points that the scenario refuses before any run."""

    def __init__(self, sweep: Sweep, points: Sequence[Point]) -> None:
        self.sweep = sweep
        self.points = points
        self.refused: dict[int, str] = {}
        self.orders: list[Order] = []
        checksums = []
        for place, point in enumerate(points):
            try:
                scenario = sweep.scenario_of(point)
                chosen_assignors(scenario)
            except InputError as problem:
                self.refused[place] = str(problem)
                continue
            checksums.append(checksum(sweep, scenario))
            self.orders += [Order(sweep, point, (place, seed), checksums[-1]) for seed in self._seeds]
        #: Of all points' scenarios, every setting and step spelled out.
        self.checksum = hashlib.sha256("".join(checksums).encode()).hexdigest()

    @property
    def _seeds(self) -> range:
        return range(self.sweep.first_seed, self.sweep.first_seed + self.sweep.seeds)

    def outcomes(self, results: Mapping[Key, Result]) -> list[Outcome]:
        """The outcome of every point, in order, from the results of all its runs."""
        return [self._outcome(place, point, results) for place, point in enumerate(self.points)]

    def _outcome(self, place: int, point: Point, results: Mapping[Key, Result]) -> Outcome:
        if place in self.refused:
            return Outcome(point, {}, self.refused[place])
        figures: dict[int, Figures] = {}
        for seed in self._seeds:
            result = results[place, seed]
            if isinstance(result, str):
                return Outcome(point, {}, result)
            figures[seed] = result
        return Outcome(point, figures)


def checksum(sweep: Sweep, scenario: ResolvedScenario) -> str:
    """Equal for equal scenarios of a point, whatever their seed, with equal assignors of the user's own.

    The assignors have to be imported.
    """
    found = hashlib.sha256(replace(scenario, seed=sweep.first_seed).as_json().encode())
    for name in strategies(scenario.settings):
        if is_plug_in(name):
            file = sys.modules[name.partition(":")[0]].__file__
            found.update(b"" if file is None else Path(file).read_bytes())
    return found.hexdigest()


def run_one(order: Order) -> Result:
    """One run, in this process, which may be on another machine.

    Raises InputError if the scenario is not the one that the order was given for.
    """
    sweep = order.sweep
    scenario = sweep.resolve(order.point, order.key[1])
    assignors = chosen_assignors(scenario)
    if checksum(sweep, scenario) != order.checksum:
        raise InputError(f"{sweep.scenario}: it, a file that it names or groupstorm is not the sweep's here")
    try:
        return simulate(scenario, assignors, NullSink())
    except InputError as problem:
        return str(problem)


def run_in_processes(orders: Sequence[Order]) -> Iterator[tuple[Order, Result]]:
    """The results on all cores of this machine, as they come."""
    processes = max(1, min(len(orders), cores()))
    for number, result in results_as_they_come(run_one, orders, processes):
        yield orders[number], result


def run_sweep(
    sweep: Sweep, progress: Callable[[int, int], None], over: str = "--over", changed: str = "--set"
) -> list[Outcome]:
    """The outcome of every point, in order; nothing is kept. ``progress`` as for `run_points`.

    ``over``, ``changed``: how errors call the axes and the overrides. Raises InputError for axes that do not
    go together, and if the scenario refuses every point.
    """
    check_sweep(sweep, over, changed)
    outcomes = run_points(sweep, sweep.points(), progress)
    if all(outcome.refused for outcome in outcomes):
        raise InputError(f"{over}: every point is refused: {outcomes[0].refused}")
    return outcomes


def run_points(sweep: Sweep, points: Sequence[Point], progress: Callable[[int, int], None]) -> list[Outcome]:
    """The outcome of each of ``points``, in order; nothing is kept.

    ``progress``: runs that are done, and how many there are.
    """
    plan = Plan(sweep, points)
    results: dict[Key, Result] = {}
    for order, result in run_in_processes(plan.orders):
        results[order.key] = result
        progress(len(results), len(plan.orders))
    return plan.outcomes(results)
