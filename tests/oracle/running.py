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
from typing import Any, NamedTuple, Protocol, TypeVar

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


def ahead(ask: Ask, cases: Iterable[Case]) -> Iterator[tuple[list[Case], Future[list[Any]]]]:
    """Batches of cases with Kafka's answers to come; each is handed to Kafka's side before it is yielded."""
    rest = iter(cases)
    with ThreadPoolExecutor(max_workers=1) as kafka:
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


class _Outcome(Protocol):
    our_cpu_seconds: float


_Run = TypeVar("_Run", bound=_Outcome)


def timed(run: Callable[[], _Run]) -> tuple[_Run, Seconds]:
    """The outcome of a run, and its cost. The JVM's is known once it has ended."""
    start, children = time.perf_counter(), _children_cpu()
    outcome = run()
    wall = time.perf_counter() - start
    return outcome, Seconds(_children_cpu() - children, outcome.our_cpu_seconds, wall)


def _children_cpu() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def add_case_arguments(parser: argparse.ArgumentParser, count: int, help_on_count: str, golden: str) -> None:
    """The options of a run of random cases."""
    parser.add_argument(
        "--count", type=positive, default=count, help=f"{help_on_count} (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which of them (default: %(default)s)")
    parser.add_argument(
        "--show", type=int, default=3, help="differences to shrink and print (default: %(default)s)"
    )
    parser.add_argument("--write-golden", action="store_true", help=f"instead: ask Kafka for {golden} anew")
