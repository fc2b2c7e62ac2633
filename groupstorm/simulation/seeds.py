"""Runs the schedules of many seeds on several cores and finds the first seed that fails."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

from groupstorm.storms.runs.worker_processes import end_with_parent

#: Whether the schedule of a seed fails.
Fails = Callable[[int], bool]


def first_failing(fails: Fails, seeds: range, processes: int) -> int | None:
    """The smallest seed that fails; None if none does.

    The processes are forked, because a test is a function that need not be importable. Without fork
    (Windows), and for one process, this process runs the seeds. Raises RuntimeError if a process ends early.
    """
    count = min(processes, len(seeds))
    if count <= 1 or not hasattr(os, "fork"):
        return next((seed for seed in seeds if fails(seed)), None)
    context = multiprocessing.get_context("fork")
    found = context.Value("q", seeds.stop)
    workers = [
        context.Process(target=_work, args=(fails, seeds[first::count], found), daemon=True)
        for first in range(count)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.kill()
                worker.join()
    ended = [worker.exitcode for worker in workers if worker.exitcode != 0]
    if ended:
        raise RuntimeError(f"a process that ran schedules has ended with exit code {ended[0]}")
    return found.value if found.value < seeds.stop else None


def _work(fails: Fails, seeds: range, found: Any) -> None:
    """In a worker: the smallest of its seeds that fails, up to the smallest that any worker has found."""
    end_with_parent()
    for seed in seeds:
        if seed > found.value:
            return
        if fails(seed):
            with found.get_lock():
                found.value = min(found.value, seed)
            return
