"""Parameters of tests that have a sample in a quicker run, and the rest in a longer one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sizes(sample: int, many: int, within_minutes: int) -> list[Any]:
    """A count of random cases, smaller and larger. ``within_minutes``: the time limit of the larger run."""
    limit = pytest.mark.timeout(within_minutes * 60)
    return [pytest.param(sample, id="sample"), pytest.param(many, marks=[pytest.mark.soak, limit], id="soak")]


def one_in(count: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of a test, of which a bare `pytest` runs one in ``count``, and `./dev test` all."""
    return [case if number % count == 0 else _slow(case) for number, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.slow)


def in_soak(*cases: Any) -> list[Any]:
    """Further cases of a test, for `./dev soak` alone. A plain tuple gives several parameters."""
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.soak) for case in cases
    ]
