"""Shared parts of runs of random cases: two sides that work at once, their CPU time, progress lines."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

Case = dict[str, Any]
#: Answers a case's JSON line with a JSON line: Kafka, or whoever stands in for it in a test.
Ask = Callable[[str], str]

#: How many cases the two sides take at a time; while one works on a batch so does the other.
_BATCH = 50
_PROGRESS_EVERY = 500


class Seconds(NamedTuple):
    """The cost of a run: CPU of either side, and the time on the clock."""

    kafka_cpu: float
    our_cpu: float
    wall: float


def as_line(case: Case) -> str:
    return json.dumps(case, ensure_ascii=False, separators=(",", ":"))


def ahead(
    ask: Ask, cases: Iterable[Case], kafka: ThreadPoolExecutor
) -> Iterator[tuple[list[Case], Future[list[Any]]]]:
    """Batches of cases with Kafka's answers to come; each is handed to Kafka's side before it is yielded."""
    rest = iter(cases)
    while batch := list(islice(rest, _BATCH)):
        yield batch, kafka.submit(_answers, ask, batch)


def _answers(ask: Ask, batch: list[Case]) -> list[Any]:
    return [json.loads(ask(as_line(case))) for case in batch]


class Progress:
    """A line on standard error every few hundred cases, and at the end; ``things``: what they are called."""

    def __init__(self, count: int, things: str) -> None:
        self._count = count
        self._things = things
        self._start = time.perf_counter()

    def __call__(self, done: int, different: int) -> None:
        if done % _PROGRESS_EVERY == 0 or done == self._count:
            elapsed = time.perf_counter() - self._start
            print(
                f"oracle: {done:,} of {self._count:,} {self._things}, {different:,} differ, {elapsed:.0f} s",
                file=sys.stderr,
            )


def positive(text: str) -> int:
    """A number of cases, as an option of a command."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of cases")
    return number


def children_cpu() -> float:
    """CPU seconds of the processes that have ended: the JVM's, once it is closed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
