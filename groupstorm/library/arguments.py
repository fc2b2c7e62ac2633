"""The arguments that the functions share, checked: a wrong one is an InputError that names it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from groupstorm.problems import InputError
from groupstorm.report.progress import RunsProgress, runs_progress
from groupstorm.storms.scenario.files import MAX_SEED, ResolvedScenario, Scenario, load

#: The prefix of errors about ``settings``.
SETTINGS = "settings: "

Settings = Mapping[str, Any]


class Storm(NamedTuple):
    """A scenario as it was named and as it was read, and what is to be changed in it."""

    named: str
    scenario: Scenario
    changed: dict[str, Any]

    def resolve(self, variant: str | None, seed: int | None) -> ResolvedScenario:
        return self.scenario.resolve(variant, seed, self.changed, SETTINGS)


def read_storm(scenario: str | os.PathLike[str], settings: Settings | None) -> Storm:
    """Raises InputError."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(f"settings: {settings!r}: expected names with values: {{'members': 100}}")
    if not isinstance(scenario, str | os.PathLike):
        raise InputError(
            f"scenario: {type(scenario).__name__}: expected a preset's name or the path of a file; "
            "settings={...} has what differs from it"
        )
    named = os.fspath(scenario)
    return Storm(named, load(named), {str(name): value for name, value in (settings or {}).items()})


def check_seed(seed: int | None) -> None:
    """Raises InputError."""
    if seed is not None and (not _is_integer(seed) or not 0 <= seed <= MAX_SEED):
        raise InputError(f"seed: {seed!r}: expected a whole number from 0 to {MAX_SEED}")


def check_seeds(seeds: int) -> None:
    """Raises InputError."""
    if not _is_integer(seeds) or seeds < 1:
        raise InputError(f"seeds: {seeds!r}: expected how many, 1 at least; seed= is the first of them")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@contextmanager
def reported(progress: bool | RunsProgress) -> Iterator[RunsProgress]:
    """The function that takes how many runs are done: the user's, one that shows them, one that does not."""
    if callable(progress):
        yield progress
    elif progress:
        with runs_progress() as shown:
            yield shown
    else:
        yield lambda done, of: None
