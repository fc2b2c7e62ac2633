"""Checks of many seeds, on all cores: they are computations alone, so they may share the machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

SEEDS_MAX_AT_ONCE = 4


@contextmanager
def processes() -> Iterator[Executor]:
    """As many processes as there are cores, and no more than a few: each holds two storms in memory."""
    workers = min(os.cpu_count() or 1, SEEDS_MAX_AT_ONCE)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def check_seeds(
    executor: Executor, check: Callable[..., None], seeds: Iterable[int], **arguments: Any
) -> None:
    """``check(seed=..., **arguments)`` for every seed. Raises what the first one that fails raises."""
    for _ in executor.map(partial(_check, check, arguments), seeds):
        pass


def _check(check: Callable[..., None], arguments: dict[str, Any], seed: int) -> None:
    try:
        check(seed=seed, **arguments)
    except AssertionError as failed:
        raise AssertionError(f"seed {seed}: {failed}") from failed
