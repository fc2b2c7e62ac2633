"""A run against Kafka's own assignors: `./dev oracle consumer` and `./dev oracle server`."""

from __future__ import annotations

import argparse
import time

from tests.oracle.assignors import golden
from tests.oracle.assignors.differential import Outcome, compare
from tests.oracle.assignors.report import summary
from tests.oracle.assignors.sides import Side
from tests.oracle.build import Built, build
from tests.oracle.jvm import Jvm
from tests.oracle.running import Progress, Seconds, children_cpu, positive

_COUNT = 2_000


def add_arguments(parser: argparse.ArgumentParser, side: Side) -> None:
    """The command's options."""
    parser.add_argument(
        "--count",
        type=positive,
        default=_COUNT,
        help=f"cases, the {len(side.assignors)} assignors in turn (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="which cases (default: %(default)s)")
    parser.add_argument(
        "--show", type=int, default=3, help="differences to shrink and print (default: %(default)s)"
    )
    parser.add_argument(
        "--write-golden", action="store_true", help=f"instead: ask Kafka for {golden.path(side).name} anew"
    )


def run(options: argparse.Namespace, side: Side) -> int:
    """0: no difference; 1: one at least."""
    built = build()
    if options.write_golden:
        with Jvm(built, side.command) as kafka:
            count = golden.write(side, kafka.ask)
        print(f"{count} cases and Kafka's answers to them written to {golden.path(side)}")
        return 0
    outcome, seconds = _timed(built, options, side)
    print(summary(outcome, f"{side.title}, seed {options.seed}", seconds))
    return 1 if outcome.different else 0


def _timed(built: Built, options: argparse.Namespace, side: Side) -> tuple[Outcome, Seconds]:
    start, children = time.perf_counter(), children_cpu()
    progress = Progress(options.count, "cases")

    def tell(outcome: Outcome) -> None:
        progress(outcome.count, len(outcome.different))

    with Jvm(built, side.command) as kafka:
        cases = side.random_cases(options.seed, options.count)
        outcome = compare(side, kafka.ask, cases, shown_max=options.show, on_progress=tell)
    wall = time.perf_counter() - start
    return outcome, Seconds(children_cpu() - children, outcome.our_cpu_seconds, wall)
