"""Sweeps: one scenario with every combination of some settings, each with several seeds, on all cores.

Nothing is written: a point's figures come from its events as they happen.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from groupstorm.figures import Figures
from groupstorm.problems import InputError
from groupstorm.storms.run import run_without_trace
from groupstorm.storms.scenario.files import ResolvedScenario, Scenario, load
from groupstorm.storms.scenario.settings import duration_unit_us, setting
from groupstorm.storms.several import cores
from groupstorm.storms.worker_processes import map_in_processes
from groupstorm.units import UNITS_US, duration_us
from groupstorm.yaml_documents import parse_yaml

POINTS_MAX = 10_000

#: Not a setting: `--over variant=eager,static` sweeps over the scenario's variants.
VARIANT = "variant"

_RANGE = re.compile(r"(?P<first>[^.:]+(?:\.\d+)?[a-z]*)\.\.(?P<last>[^:]+):(?P<step>[^:]+)")


@dataclass(frozen=True, slots=True)
class Axis:
    """One `--over`: the setting and its values, as they are written and as they are set."""

    name: str
    labels: tuple[str, ...]
    values: tuple[Any, ...]

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values if they all are numbers (durations in milliseconds) that rise."""
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values):
            return None
        return self.values if list(self.values) == sorted(set(self.values)) else None


@dataclass(frozen=True, slots=True)
class Point:
    """One combination: label and value of each axis."""

    labels: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A point's runs by seed, or why the scenario refuses these settings."""

    point: Point
    figures: Mapping[int, Figures]
    refused: str | None = None

    @property
    def broken(self) -> int:
        """Runs in which an invariant broke."""
        return sum(
            any(verdict != "held" for verdict in (figures.invariants or {}).values())
            for figures in self.figures.values()
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to run. ``scenario``: a preset's name or a file. ``overrides``: those of --set."""

    scenario: str
    variant: str | None
    axes: tuple[Axis, ...]
    first_seed: int
    seeds: int
    overrides: Mapping[str, Any]

    def points(self) -> list[Point]:
        return [
            Point(tuple(label for label, _ in one), dict(zip(self.names, (v for _, v in one), strict=True)))
            for one in product(*(zip(axis.labels, axis.values, strict=True) for axis in self.axes))
        ]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def command(self, point: Point, seed: int) -> str:
        """The command that runs one seed of a point with its trace."""
        variant = point.settings.get(VARIANT, self.variant)
        words = ["groupstorm", "run", self.scenario]
        words += ["--variant", variant] if variant else []
        words += ["--seed", str(seed)]
        changed = {name: str(value) for name, value in self.overrides.items()}
        changed |= {
            name: label for name, label in zip(self.names, point.labels, strict=True) if name != VARIANT
        }
        return shlex.join(words + [word for pair in changed.items() for word in ("--set", "=".join(pair))])


def parse_axis(text: str, scenario: Scenario) -> Axis:
    """`session.timeout.ms=10s..120s:10s`, `members=20,60` or `variant=eager,static`. Raises InputError."""
    where = f"--over {text!r}"
    name, equals, written = text.partition("=")
    name = name.strip()
    if not equals or not name or not written.strip():
        raise InputError(f"{where}: expected NAME=A..B:STEP or NAME=V1,V2")
    if name == VARIANT:
        labels = [part.strip() for part in written.split(",")]
        for label in labels:
            if label not in scenario.variants:
                raise InputError(f"{where}: {label!r} is not one of {', '.join(scenario.variants)}")
        return _axis(where, name, labels, labels)
    setting(name, f"{where}: ")
    unit_us = duration_unit_us(name)
    if ".." in written:
        return _range(where, name, written.strip(), unit_us)
    labels = _split(written)
    values = [_value(where, label, unit_us) for label in labels]
    return _axis(where, name, labels, values)


def _axis(where: str, name: str, labels: Sequence[str], values: Sequence[Any]) -> Axis:
    if len({repr(value) for value in values}) != len(values):
        raise InputError(f"{where}: a value stands twice")
    return Axis(name, tuple(labels), tuple(values))


def _value(where: str, label: str, unit_us: int) -> Any:
    """A duration with a unit becomes a number; all else is YAML, as with --set."""
    if unit_us and label[:1].isdigit():
        in_us = duration_us(where, label, unit_us)
        return in_us // unit_us if in_us % unit_us == 0 else label
    return parse_yaml(label, where)


def _range(where: str, name: str, written: str, unit_us: int) -> Axis:
    match = _RANGE.fullmatch(written)
    if match is None:
        raise InputError(f"{where}: expected A..B:STEP, as in 10s..120s:10s or 20..100:20")
    first, last, step = (_number(where, match[part], unit_us) for part in ("first", "last", "step"))
    if step <= 0 or last < first:
        raise InputError(f"{where}: expected A..B:STEP with a STEP above 0 and B not below A")
    if (last - first) / step >= POINTS_MAX:
        raise InputError(f"{where}: more than {POINTS_MAX:,} values: expected a larger STEP")
    numbers = [first + step * index for index in range(int((last - first) // step) + 1)]
    values = [int(one) if one.denominator == 1 else float(one) for one in numbers]
    unit = match["step"].strip().lstrip("0123456789.").strip() if unit_us else ""
    scale = Fraction(unit_us, UNITS_US[unit]) if unit else Fraction(1)
    labels = [f"{_decimal(one * scale)}{unit}" for one in numbers]
    return _axis(where, name, labels, values)


def _decimal(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):g}"


def _number(where: str, written: str, unit_us: int) -> Fraction:
    if unit_us:
        return Fraction(duration_us(where, written, unit_us), unit_us)
    try:
        return Fraction(written.strip())
    except ValueError:
        raise InputError(f"{where}: {written!r} is no number") from None


def _split(text: str) -> list[str]:
    """At commas outside of brackets: `a,{p50: 1, p95: 2}` has two parts."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def run_sweep(sweep: Sweep, progress: Callable[[int, int], None]) -> Iterator[Outcome]:
    """The outcome of every point, in order. ``progress``: runs that are done, and how many there are.

    Raises InputError if there are too many points.
    """
    points = sweep.points()
    if len(points) > POINTS_MAX:
        raise InputError(f"--over: {len(points):,} points: expected {POINTS_MAX:,} at most")
    yield from run_points(sweep, points, progress)


def run_points(
    sweep: Sweep, points: Sequence[Point], progress: Callable[[int, int], None]
) -> Iterator[Outcome]:
    """The outcome of each of ``points``, in order; ``progress`` as for `run_sweep`."""
    seeds = range(sweep.first_seed, sweep.first_seed + sweep.seeds)
    refused = [_refusal(sweep, point) for point in points]
    orders = [
        (sweep, point, seed)
        for point, reason in zip(points, refused, strict=True)
        if reason is None
        for seed in seeds
    ]
    results = map_in_processes(run_one, orders, max(1, min(len(orders), cores())))
    done = 0
    for point, reason in zip(points, refused, strict=True):
        if reason is not None:
            yield Outcome(point, {}, reason)
            continue
        figures: dict[int, Figures] = {}
        problems: list[str] = []
        for seed in seeds:
            found = next(results)
            done += 1
            progress(done, len(orders))
            if isinstance(found, str):
                problems.append(found)
            else:
                figures[seed] = found
        yield Outcome(point, {}, problems[0]) if problems else Outcome(point, figures)


def _refusal(sweep: Sweep, point: Point) -> str | None:
    """Why the scenario refuses the settings of a point, found before anything is run."""
    try:
        _resolve(sweep, point, sweep.first_seed)
    except InputError as problem:
        return str(problem)
    return None


def scenario_of(sweep: Sweep, point: Point) -> ResolvedScenario:
    """The scenario of a point's first seed, if it is not refused."""
    return _resolve(sweep, point, sweep.first_seed)


def _resolve(sweep: Sweep, point: Point, seed: int) -> ResolvedScenario:
    settings = {name: value for name, value in point.settings.items() if name != VARIANT}
    variant = point.settings.get(VARIANT, sweep.variant)
    return load(sweep.scenario).resolve(variant, seed, {**sweep.overrides, **settings})


def run_one(order: tuple[Sweep, Point, int]) -> Figures | str:
    """One seed of a point, in this process; the reason if its settings are refused."""
    sweep, point, seed = order
    try:
        return run_without_trace(_resolve(sweep, point, seed))
    except InputError as problem:
        return str(problem)
