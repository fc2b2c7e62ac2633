"""Parameters of tests that have a sample in `./dev test` and the rest in `./dev soak`."""

from __future__ import annotations

from typing import Any

import pytest


def sizes(sample: int, many: int, within_minutes: int) -> list[Any]:
    """A count of random cases, smaller and larger. ``within_minutes``: the time limit of the larger run."""
    limit = pytest.mark.timeout(within_minutes * 60)
    return [pytest.param(sample, id="sample"), pytest.param(many, marks=[pytest.mark.soak, limit], id="soak")]


def in_soak(*cases: Any) -> list[Any]:
    """Further cases of a test, for `./dev soak` alone. A plain tuple gives several parameters."""
    return [
        pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.soak) for case in cases
    ]
