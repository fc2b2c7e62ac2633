"""Wait for a condition, with a deadline: no test sleeps for a time that somebody has guessed."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.processes import outcome_of

PATIENCE_S = 120.0
_LOOK_S = 0.01

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str = "") -> T:
    """The first answer of the condition that is true; ``what``: said if it never is."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (met := condition()):
        assert time.monotonic() < deadline_s, f"after {PATIENCE_S:g} s still not: {what or condition}"
        time.sleep(_LOOK_S)
    return met


async def until(condition: Callable[[], object]) -> None:
    """Return as soon as the condition is true; other tasks of the loop run meanwhile."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(_LOOK_S)


def while_it_runs(process: subprocess.Popen[Any], condition: Callable[[], T]) -> T:
    """The first answer of the condition that is true, which comes while the process runs."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (met := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, outcome_of(process, 0)
        time.sleep(_LOOK_S)
    return met
