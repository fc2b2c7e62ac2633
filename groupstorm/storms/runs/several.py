"""More than one run: the variants of a scenario, or many seeds of one, in parallel processes; and finished
runs, read back from their folders, and run again to compare them row by row.

A folder holds one run, those of several seeds, or a comparison.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from groupstorm.figures import Figures, FiguresAccumulator
from groupstorm.figures.table import finding, verdict_on
from groupstorm.history.reasons import GapReasons, Reasons
from groupstorm.problems import CheckFailed, InputError, not_one_of
from groupstorm.storms.runs.choices import begin_apart, beside_choices, by_circumstances, defaults_among
from groupstorm.storms.runs.contradictions import cause_of, cost_of
from groupstorm.storms.runs.run import Run, run
from groupstorm.storms.runs.run_folder import RunFolder, real_time_options, remove_run
from groupstorm.storms.runs.worker_processes import map_in_processes
from groupstorm.storms.scenario.files import FIGURES_FROM, ResolvedScenario, Scenario, load
from groupstorm.storms.scenario.quantities import is_name
from groupstorm.storms.scenario.steps import START
from groupstorm.trace.reader import Row, read_entries, read_rows, trace_files
from groupstorm.verdicts.comparison import compare_sentences
from groupstorm.verdicts.ranking import Runs, parse_ranking, ranks_unowned
from groupstorm.verdicts.recommendation import recommendation
from groupstorm.wording import seconds
from groupstorm.yaml_documents import read_document

COMPARISON_FILE = "comparison.json"

#: Seeds of each variant, point or change unless somebody says otherwise: one seed shows no spread.
SEEDS_DEFAULT = 5
SEEDS_MAX = 100_000

_BEGIN_APART = (
    f"The figures of some variants begin later than those of others ({FIGURES_FROM}): only those that begin "
    "at the same time are ranked together."
)


@dataclass(frozen=True, slots=True)
class Order:
    """One run to do, in values that travel to another process."""

    scenario: str
    variant: str | None
    seed: int | None
    overrides: Mapping[str, Any]
    folder: Path
    trace_format: str = "jsonl"
    exact: bool = False


def run_order(order: Order) -> Run:
    """Do one run, in this process."""
    with named_in_errors(order.variant):
        scenario = load(order.scenario).resolve(order.variant, order.seed, order.overrides)
        return run(scenario, order.folder, order.trace_format, order.exact)


@contextmanager
def named_in_errors(variant: str | None) -> Iterator[None]:
    """Let an `InputError` of one of several variants say which it is."""
    try:
        yield
    except InputError as problem:
        if variant is None or f" {variant}: " in str(problem):
            raise
        raise InputError(f"variant {variant}: {problem}") from problem


def run_all(orders: Sequence[Order]) -> Generator[Run]:
    """Do the runs, as many at once as there are cores, and return them in the order of ``orders``.

    If one fails or the iteration is broken off, the folders of runs that are not complete are removed.
    """
    processes = min(len(orders), cores())
    if processes <= 1:
        yield from map(run_order, orders)
        return
    unfinished = [RunFolder(order.folder) for order in orders]
    try:
        for finished in map_in_processes(run_order, orders, processes):
            unfinished.pop(0)
            yield finished
    except BaseException:
        for folder in unfinished:
            if not folder.is_complete():
                folder.discard()
        raise


def orders_of(
    scenario: str,
    variants: Iterable[str],
    seeds: range,
    overrides: Mapping[str, Any],
    folder: Path,
    trace_format: str = "jsonl",
    exact: bool = False,
) -> list[Order]:
    """One run for each seed of each variant, in the folder of a comparison."""
    return [
        Order(
            scenario,
            variant,
            seed,
            overrides,
            folder_of(folder, variant, seed, len(seeds)),
            trace_format,
            exact,
        )
        for variant in variants
        for seed in seeds
    ]


def run_variants(orders: Sequence[Order], finished: Callable[[Run], None]) -> dict[str, list[Run]]:
    """Do the runs and return those of each variant. ``finished`` takes each run when it is done."""
    runs: dict[str, list[Run]] = {}
    with closing(run_all(orders)) as done:
        for one in done:
            runs.setdefault(one.scenario.variant, []).append(one)
            finished(one)
    return runs


def cores() -> int:
    """Processes that this machine can run at once."""
    return os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count() or 1


def check_variants(scenario: str, wanted: Sequence[str]) -> Sequence[str]:
    """The variants to compare: those that were named, or all. Raises InputError."""
    variants = load(scenario).variants
    for name in wanted:
        if name not in variants:
            raise InputError(f"variant: {not_one_of(name, variants)}")
    return tuple(dict.fromkeys(wanted or variants))


def folder_of(folder: Path, variant: str | Path, seed: int, seeds: int) -> Path:
    """The folder of the run of one seed of a variant, in the folder of a comparison of so many seeds."""
    return folder / variant if seeds == 1 else folder / variant / f"seed-{seed}"


def scenario_files(
    scenario: str, folders: Mapping[str | None, str | Path], seeds: range, overrides: Mapping[str, Any]
) -> dict[str, str]:
    """The scenario.yaml of every seed of every variant by its path. ``folders``: those of the variants."""
    loaded = load(scenario)
    return {
        (folder_of(Path(), below, seed, len(seeds)) / "scenario.yaml").as_posix(): (
            loaded.resolve(variant, seed, overrides).as_yaml()
        )
        for variant, below in folders.items()
        for seed in seeds
    }


def forget_other_runs(folder: Path, variants: Iterable[str], seeds: Collection[int]) -> None:
    """Remove the runs of an earlier comparison in ``folder`` but those of these seeds of these variants."""
    older = folder / COMPARISON_FILE
    if not older.is_file():
        return
    try:
        known = json.loads(older.read_text("utf-8"))["variants"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{older}: not a comparison: name another folder with --out") from error
    older.unlink()
    kept = {folder_of(folder, variant, seed, len(seeds)) for variant in variants for seed in seeds}
    for below in (folder / name for name in known if is_name(name)):
        for run_folder in (*below.glob("seed-*"), below):
            if run_folder not in kept:
                remove_run(run_folder)


def sentences(variants: Mapping[str, Sequence[Run]], weights: Mapping[str, float] | None = None) -> list[str]:
    """The answer on the runs of each variant."""
    figures = {name: [run.figures for run in runs] for name, runs in variants.items()}
    scenarios = {name: runs[0].scenario for name, runs in variants.items()}
    said = compare_sentences(
        figures,
        weights,
        {name: [run.reasons for run in runs] for name, runs in variants.items()},
        by_circumstances(scenarios),
    )
    for name, runs in variants.items():
        restless = next((run for run in runs if finding(run.violations) is not None), runs[0])
        found = finding(restless.violations) or ""
        if found and (cause := cause_of(restless.scenario, found)):
            of_seed = f" (seed {restless.scenario.seed})" if len(runs) > 1 else ""
            said.append(f"{name} {verdict_on(found)} because {cause}; {cost_of(restless.figures)}{of_seed}.")
    return [_BEGIN_APART, *said] if begin_apart(scenarios) else said


def recommended(
    variants: Mapping[str, Sequence[Run]], weights: Mapping[str, float] | None = None
) -> list[str]:
    """The sentences on the variant to take; none if the variants differ in no choice of the owner."""
    scenarios = {name: runs[0].scenario for name, runs in variants.items()}
    defaults = defaults_among(scenarios)
    if defaults is None:
        beside = beside_choices(scenarios.values())
        said = f"No recommendation: beside settings to choose, the variants differ in {beside}."
        return [said] if beside else []
    figures = {name: [run.figures for run in runs] for name, runs in variants.items()}
    every = [run for runs in variants.values() for run in runs]
    start_us = sum(run.reasons.start_us for run in every)
    start = start_outweighs([run.scenario for run in every], figures, start_us, weights)
    return recommendation(figures, defaults, weights) if start is None else [f"No recommendation: {start}."]


def start_outweighs(
    scenarios: Sequence[ResolvedScenario], runs: Runs, start_us: int, weights: Mapping[str, float] | None
) -> str | None:
    """Why nothing is recommended: figures that are more of the group's start than of the scenario's steps.

    A scenario that does nothing but start a group is about its start, and a ranking without un-owned time
    does not ask for it. ``start_us``: the part of the un-owned time of all ``runs`` that is the start.
    """
    steps = [step for scenario in scenarios for step in scenario.steps if step.do != START]
    first = min(steps, key=lambda step: step.at_ms, default=None)
    counted_later = any(scenario.figures_from_ms for scenario in scenarios)
    total_s = sum(figures.unowned_partition_seconds or 0 for each in runs.values() for figures in each)
    percent = start_us / 10_000 / total_s if total_s else 0
    if first is None or not first.at_ms or counted_later or percent <= 50 or not ranks_unowned(runs, weights):
        return None
    return (
        f"{int(percent)} % of the un-owned time of all these runs is the group's start, and the first step "
        f"({first.do}) comes {seconds(first.at_ms / 1000)} later. "
        f"`{FIGURES_FROM}: {first.at_ms}` in the scenario leaves the start out of all figures"
    )


def weights_of(scenario: Scenario, rank: str | None, option: str = "--rank") -> Mapping[str, float] | None:
    """The ranking of variants: as ``rank`` says, or else as the scenario does. Raises InputError."""
    if rank is not None:
        return parse_ranking(rank, option)
    return None if scenario.rank is None else parse_ranking(scenario.rank)


#: Keys that name a row, and how much of a row is printed.
_SHOWN = frozenset({"time_us", "event", "member"})
_MOST_CHARACTERS = 300
#: So much of what two texts have in common is printed before their difference.
_KEPT_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run: its scenario as scenario.yaml has it, and its figures."""

    folder: Path
    scenario: Mapping[str, Any]
    figures: Figures

    def reasons(self) -> Reasons:
        """The reasons why partitions were un-owned, by the trace; none if the trace is gone."""
        gaps = GapReasons()
        try:
            trace_files(self.folder)
        except InputError:
            return Reasons()
        figures = FiguresAccumulator(listener=gaps)
        figures.add_all(entry for _, entry in read_entries(self.folder) if entry is not None)
        figures.figures()  # which closes the gaps that are open
        return gaps.reasons()


def read_runs(folder: Path) -> dict[str, list[PastRun]]:
    """The runs in a folder by their variants, one of each seed. Raises InputError if there are none."""
    if (folder / "scenario.yaml").is_file():
        run = _read_run(folder)
        return {_variant(run): [run]}
    seeds = _runs_of_seeds(folder)
    if seeds:
        return {_variant(seeds[0]): seeds}
    comparison = folder / COMPARISON_FILE
    if not comparison.is_file():
        raise InputError(f"{folder}: not the folder of a run, of its seeds, or of a comparison")
    found = {}
    for name in _mapping(comparison, read_json(comparison).get("variants")):
        below = folder / name
        found[name] = [_read_run(below)] if (below / "scenario.yaml").is_file() else _runs_of_seeds(below)
        if not found[name]:
            raise InputError(f"{below}: {COMPARISON_FILE} names this variant, but its run is not there")
    return found


def _runs_of_seeds(folder: Path) -> list[PastRun]:
    below = [path for path in folder.glob("seed-*") if (path / "scenario.yaml").is_file()]
    return sorted(map(_read_run, below), key=lambda run: int(run.scenario.get("seed", 0)))


def _variant(run: PastRun) -> str:
    return str(run.scenario.get("variant", "default"))


def _read_run(folder: Path) -> PastRun:
    scenario, figures = folder / "scenario.yaml", folder / "figures.json"
    found = figures_of(_mapping(figures, read_json(figures)))
    return PastRun(folder, _mapping(scenario, read_document(scenario)), found)


def figures_of(content: Mapping[str, Any]) -> Figures:
    """Figures from their JSON; None for those that an older version did not have."""
    known: dict[str, Any] = {field.name: content.get(field.name) for field in fields(Figures)}
    return Figures(**known)


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises InputError."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error


def _mapping(path: Path, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected names with values")
    return value


def pair(
    first: Mapping[str, Sequence[PastRun]], second: Mapping[str, Sequence[PastRun]]
) -> list[tuple[str, str]]:
    """The pairs of variants of two folders that are compared. Raises InputError if there is none.

    Two folders of one variant each are compared whatever their names; else variants of the same name are.
    """
    if len(first) == len(second) == 1:
        return [(next(iter(first)), next(iter(second)))]
    common = [(name, name) for name in first if name in second]
    if not common:
        raise InputError(f"no variant in common: {', '.join(first)} and {', '.join(second)}")
    return common


def replay(folder: Path, exact: bool, overrides: Mapping[str, Any]) -> int:
    """Run ``folder``'s scenario.yaml again; returns the number of rows.

    Raises CheckFailed naming the first row that differs, InputError for a folder that is no run's.
    """
    scenario_file = folder / "scenario.yaml"
    if not scenario_file.is_file():
        raise InputError(f"{folder}: no scenario.yaml in it: not the folder of a run")
    options = real_time_options(folder)
    if options:
        raise InputError(
            f"{folder}: ran in real time ({' '.join(options)}): no such run repeats to the event; "
            f"`groupstorm run {scenario_file} {' '.join(options)}` takes the same steps"
        )
    (trace,) = trace_files(folder)[:1]
    scenario = load(str(scenario_file)).resolve(None, None, overrides)
    with TemporaryDirectory(prefix="groupstorm-replay-") as temporary:
        again = run(scenario, Path(temporary) / "again", trace.suffix.removeprefix("."), exact)
        return compare_rows(read_rows(trace), read_rows(again.trace), str(folder))


def compare_rows(before: Iterable[Row], after: Iterable[Row], name: str) -> int:
    """Count the rows. Raises CheckFailed for the first that differs; ``name``: the run's."""
    count = 0
    for old, new in zip_longest(before, after):
        if old != new:
            raise CheckFailed(f"{name}: row {count} differs: was {_shown(old, new)}, is {_shown(new, old)}")
        count += 1
    return count


def _shown(row: Row | None, other: Row | None) -> str:
    """``row``, or what differs from ``other`` in it if both are of one event."""
    if row is None:
        return "missing"
    if other is None or row.get("event") != other.get("event"):
        return _short(row)
    differing = {key: value for key, value in row.items() if other.get(key) != value or key in _SHOWN}
    return _short({key: _from_difference(value, other.get(key)) for key, value in differing.items()})


def _from_difference(value: Any, other: Any) -> Any:
    """Cut what a text begins with as the other one does, but for the last characters of that."""
    if not isinstance(value, str) or not isinstance(other, str):
        return value
    alike = next((n for n, (one, two) in enumerate(zip(value, other, strict=False)) if one != two), 0)
    return f"...{value[alike - _KEPT_CHARACTERS :]}" if alike > _KEPT_CHARACTERS else value


def _short(row: Row) -> str:
    text = str(dict(row))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
