"""Sweeps: one scenario with every combination of some settings, each with several seeds."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from numbers import Number
from typing import Any

from groupstorm.figures import Figures
from groupstorm.problems import InputError, not_one_of
from groupstorm.storms.runs.run import broken_invariants
from groupstorm.storms.scenario.files import ResolvedScenario, Scenario, load
from groupstorm.storms.scenario.settings import duration_unit_us, setting
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
    """A point's runs by seed, or why the scenario refuses these settings.

    ``start_us``: the part of their un-owned time that is the group's start. ``failure``: an assignor's first.
    """

    point: Point
    figures: Mapping[int, Figures]
    refused: str | None = None
    start_us: int = 0
    failure: str | None = None

    @property
    def broken(self) -> int:
        """Runs in which an invariant broke."""
        return sum(bool(broken_invariants(figures)) for figures in self.figures.values())


@dataclass(frozen=True, slots=True)
class Sweep:
    """The runs to do. ``scenario``: a preset's name or a file. ``overrides``: those of --set."""

    scenario: str
    variant: str | None
    axes: tuple[Axis, ...]
    first_seed: int
    seeds: int
    overrides: Mapping[str, Any]

    def points(self) -> list[Point]:
        """All combinations."""
        return [
            Point(tuple(label for label, _ in one), dict(zip(self.names, (v for _, v in one), strict=True)))
            for one in product(*(zip(axis.labels, axis.values, strict=True) for axis in self.axes))
        ]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def resolve(self, point: Point, seed: int) -> ResolvedScenario:
        """The scenario of one run. Raises InputError if it refuses the settings."""
        settings = {name: value for name, value in point.settings.items() if name != VARIANT}
        variant = point.settings.get(VARIANT, self.variant)
        return load(self.scenario).resolve(variant, seed, {**self.overrides, **settings})

    def scenario_of(self, point: Point) -> ResolvedScenario:
        """The scenario of a point's first seed, if it is not refused."""
        return self.resolve(point, self.first_seed)

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


def parse_axis(text: str, scenario: Scenario, option: str = "--over") -> Axis:
    """`session.timeout.ms=10s..120s:10s`, `members=20,60` or `variant=eager,static`. Raises InputError."""
    where = f"{option} {text!r}"
    name, equals, written = text.partition("=")
    name = name.strip()
    if not equals or not name or not written.strip():
        raise InputError(f"{where}: expected NAME=A..B:STEP or NAME=V1,V2")
    if ".." in written and name != VARIANT:
        setting(name, f"{where}: ")
        return _range(where, name, written.strip(), duration_unit_us(name))
    return _axis_of_labels(where, name, _split(written), scenario)


def axis_of(name: str, values: Any, scenario: Scenario) -> Axis:
    """An axis of values as Python has them, or of a text as --over has it. Raises InputError."""
    if isinstance(values, str):
        return parse_axis(f"{name}={values}", scenario, "over")
    where = f"over {name!r}"
    labels = [_label(value) for value in values] if isinstance(values, Iterable) else []
    if not labels:
        raise InputError(f"{where}: {values!r}: expected a list of values, or a text: '10s..60s:10s'")
    return _axis_of_labels(where, name, labels, scenario)


def _label(value: Any) -> str:
    """A value as YAML has it."""
    is_scalar = isinstance(value, str) or (isinstance(value, Number) and not isinstance(value, bool))
    return str(value) if is_scalar else json.dumps(value)


def _axis_of_labels(where: str, name: str, labels: Sequence[str], scenario: Scenario) -> Axis:
    if name != VARIANT:
        setting(name, f"{where}: ")
        return _axis(where, name, labels, values_of(name, labels, where))
    for label in labels:
        if label not in scenario.variants:
            raise InputError(f"{where}: {not_one_of(label, scenario.variants)}")
    return _axis(where, name, labels, labels)


def values_of(name: str, labels: Sequence[str], where: str) -> list[Any]:
    """The values of an axis, as they are set, from those that are written. Raises InputError."""
    if name == VARIANT:
        return list(labels)
    return [_value(where, label, duration_unit_us(name)) for label in labels]


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


def check_sweep(sweep: Sweep, over: str = "--over", changed: str = "--set") -> None:
    """Raise InputError for too many points, axes that do not go together, or an unknown variant.

    ``over``, ``changed``: how errors call the axes and the overrides.
    """
    names, variants = sweep.names, load(sweep.scenario).variants
    if len(set(names)) != len(names):
        raise InputError(f"{over}: {next(n for n in names if names.count(n) > 1)} stands twice")
    for name in sweep.overrides:
        if name in names:
            raise InputError(f"{changed} {name}: it is swept over with {over}")
    if sweep.variant is not None and sweep.variant not in variants:
        raise InputError(f"variant: {not_one_of(sweep.variant, variants)}")
    points = prod(len(axis.values) for axis in sweep.axes)
    if points > POINTS_MAX:
        raise InputError(f"{over}: {points:,} points: expected {POINTS_MAX:,} at most")
