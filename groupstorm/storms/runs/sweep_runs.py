"""The runs of a sweep: planned, done on this machine's cores, kept in a folder for the next time.

No trace is written: a run's figures come from its events as they happen. Finished runs are kept in
`DIR/runs`, so that a killed sweep goes on from there. `definition.json` says which sweep it is; every process
that does runs appends them to `*.jsonl` files of its own, a line per run. The last line of a killed process
may be incomplete: its run counts as not done.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from groupstorm.assignors.registry import is_plug_in
from groupstorm.figures import Figures
from groupstorm.history.reasons import GapReasons
from groupstorm.problems import InputError, writing
from groupstorm.storms.runs.run import chosen_assignors
from groupstorm.storms.runs.run_folder import as_folder, json_text, write_text
from groupstorm.storms.runs.several import cores
from groupstorm.storms.runs.sweep import Axis, Outcome, Point, Sweep, check_sweep
from groupstorm.storms.runs.worker_processes import results_as_they_come
from groupstorm.storms.scenario.files import ResolvedScenario
from groupstorm.storms.world.environment import AssignorWork
from groupstorm.storms.world.member_settings import strategies
from groupstorm.storms.world.simulation import simulate
from groupstorm.trace.writer import NullSink

RUNS_FOLDER = "runs"
DEFINITION_FILE = f"{RUNS_FOLDER}/definition.json"
_LINES = "*.jsonl"

#: The fields of a definition, and the option or the content that makes another sweep.
_FIELDS = {
    "version": "version of groupstorm",
    "scenario": "scenario",
    "variant": "--variant",
    "over": "--over",
    "first_seed": "--seed",
    "seeds": "--seeds",
    "set": "--set",
    "checksum": "content of the scenario or of a file that it names",
}

#: A run of a sweep: the place of its point among the points, and its seed.
Key = tuple[int, int]


class Ran(NamedTuple):
    """A finished run. ``start_us``, ``failure``: as `Outcome` has them."""

    figures: Figures
    start_us: int = 0
    failure: str | None = None


#: A finished run, or why its settings are refused.
Result = Ran | str


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
        #: The checksum of all points' scenarios, every setting and step spelled out.
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
        ran: dict[int, Ran] = {}
        for seed in self._seeds:
            result = results[place, seed]
            if isinstance(result, str):
                return Outcome(point, {}, result)
            ran[seed] = result
        figures = {seed: one.figures for seed, one in ran.items()}
        failure = next(filter(None, (one.failure for one in ran.values())), None)
        return Outcome(point, figures, None, sum(one.start_us for one in ran.values()), failure)


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
    gaps, work = GapReasons(), AssignorWork()
    try:
        figures = simulate(scenario, assignors, NullSink(), work=work, gaps=gaps)
        return Ran(figures, gaps.reasons().start_us, work.failure)
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


def definition_text(plan: Plan, version: str) -> str:
    """The content of `definition.json`: equal for equal sweeps, whatever the goals.

    ``version``: that of groupstorm, whose runs may differ from those of another version.
    """
    sweep = plan.sweep
    return json_text(
        {
            "version": version,
            "scenario": sweep.scenario,
            "variant": sweep.variant,
            "over": [[axis.name, _labels_and_values(axis)] for axis in sweep.axes],
            "first_seed": sweep.first_seed,
            "seeds": sweep.seeds,
            "set": dict(sweep.overrides),
            "checksum": plan.checksum,
        }
    )


def _labels_and_values(axis: Axis) -> Any:
    """YAML may make a date of a label, which every setting refuses and JSON cannot hold."""
    pairs = [[label, value] for label, value in zip(axis.labels, axis.values, strict=True)]
    return json.loads(json.dumps(pairs, default=str))


class RunsFile:
    """Appends finished runs to a file of its own, which is made with the first of them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._file: IO[bytes] | None = None

    def add(self, key: Key, result: Result) -> None:
        """Keep a run, whatever happens to this process afterwards. Raises OutputError."""
        found: dict[str, Any] = {"refused": result}
        if not isinstance(result, str):
            found = {**result._asdict(), "figures": result.figures.to_json()}
        line = json.dumps({"point": key[0], "seed": key[1], **found}, ensure_ascii=False) + "\n"
        with writing(self._folder):
            if self._file is None:
                self._file = self._new_file()
            self._file.write(line.encode())
            self._file.flush()

    def _new_file(self) -> IO[bytes]:
        """Open a file under a number that no other process of the same name has."""
        for number in count(1):
            with suppress(FileExistsError):
                return (self._folder / f"{self._name}-{number}.jsonl").open("xb")
        raise AssertionError("count() does not end")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # the flush of a line that could not be written
                self._file.close()


class SweepStore:
    """The runs of the sweep in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / RUNS_FOLDER
        self._definition = folder / DEFINITION_FILE
        #: The runs of each file that were counted, and up to which byte.
        self._counted: dict[Path, tuple[int, int]] = {}

    def sweep(self) -> Sweep:
        """The sweep that the folder holds. Raises InputError."""
        written = self._read_definition()
        if written is None:
            raise InputError(
                f"{self.folder}: no sweep: expected a folder that `groupstorm sweep` has written"
            )
        try:
            axes = tuple(
                Axis(name, tuple(label for label, _ in pairs), tuple(value for _, value in pairs))
                for name, pairs in written["over"]
            )
            return Sweep(
                written["scenario"],
                written["variant"],
                axes,
                written["first_seed"],
                written["seeds"],
                written["set"],
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise self._unreadable(problem) from problem

    @contextmanager
    def begun(self, definition: str) -> Iterator[None]:
        """Make the folder for the block, or take one that holds the same sweep.

        If the block fails before the first run is finished, what was made is removed. Raises InputError for
        a folder that holds another sweep, OutputError if it cannot be written.
        """
        made = [one for one in (self.runs, *self.runs.parents) if not one.exists()]
        is_new = self._read_definition() is None
        self.check(definition)
        as_folder(self.runs)
        try:
            write_text(self._definition, definition)
            yield
        except BaseException:
            if is_new and not any(file.stat().st_size for file in self.runs.glob(_LINES)):
                for file in (*self.runs.glob(_LINES), self._definition):
                    file.unlink(missing_ok=True)
                for folder in made:
                    with suppress(OSError):
                        folder.rmdir()
            raise

    def check(self, definition: str) -> None:
        """Raise InputError if the folder holds another sweep."""
        wanted = json.loads(definition)
        there = self._read_definition() or wanted
        for field, name in _FIELDS.items():
            if there.get(field) != wanted[field]:
                raise InputError(f"{self.folder}: holds a sweep with another {name}: name another folder")

    def forget_runs(self) -> None:
        """Remove the finished runs. Raises OutputError."""
        with writing(self.runs):
            for file in self.runs.glob(_LINES):
                file.unlink(missing_ok=True)
        self._counted.clear()

    def results(self, of_files: str = _LINES) -> dict[Key, Result]:
        """The finished runs. Raises InputError for a line that is none."""
        found: dict[Key, Result] = {}
        for file in sorted(self.runs.glob(of_files)):
            try:
                lines = file.read_bytes().split(b"\n")
            except OSError as problem:
                raise InputError(f"{file}: cannot be read: {problem.strerror}") from problem
            for number, line in enumerate(lines[:-1], start=1):  # behind the last line break: incomplete
                try:
                    row = json.loads(line)
                    key = row.pop("point"), row.pop("seed")
                    refused = row.get("refused")
                    found[key] = refused or Ran(Figures(**row.pop("figures")), **row)
                except (AttributeError, KeyError, TypeError, ValueError) as problem:
                    raise InputError(
                        f"{file}:{number}: not a finished run: remove the file, and its runs are done again"
                    ) from problem
        return found

    def count(self) -> int:
        """Count the finished runs; one that two processes have finished counts twice.

        Only what the files have gained since the last call is read.
        """
        for file in self.runs.glob(_LINES):
            runs, offset = self._counted.get(file, (0, 0))
            with suppress(FileNotFoundError), file.open("rb") as opened:
                opened.seek(offset)
                gained = opened.read()
                self._counted[file] = runs + gained.count(b"\n"), offset + len(gained)
        return sum(runs for runs, _ in self._counted.values())

    def check_is_seen(self) -> None:
        """Raise InputError if this process, on another machine, does not see the folder."""
        if self._read_definition() is None:
            raise InputError(f"{self.runs}: not seen here: every worker has to see it under this path")

    def _read_definition(self) -> Mapping[str, Any] | None:
        try:
            written = json.loads(self._definition.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from problem
        if not isinstance(written, dict):
            raise self._unreadable(TypeError("expected a JSON object"))
        return written

    def _unreadable(self, problem: Exception) -> InputError:
        return InputError(
            f"{self._definition}: not the definition of a sweep: {problem!r}: name another folder"
        )


#: Does runs and keeps each in the store; it calls the last argument with the number of runs that are done.
RunOrders = Callable[[Sequence[Order], SweepStore, Callable[[int], None]], None]


def run_here(orders: Sequence[Order], store: SweepStore, progress: Callable[[int], None]) -> None:
    """Do runs on all cores of this machine."""
    with RunsFile(store.runs, "local") as file:
        for done, (order, result) in enumerate(run_in_processes(orders), start=1):
            file.add(order.key, result)
            progress(done)


def missing_orders(plan: Plan, store: SweepStore) -> list[Order]:
    """The runs of a sweep that are not in the store."""
    finished = store.results()
    return [order for order in plan.orders if order.key not in finished]
