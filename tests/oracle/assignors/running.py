"""A run against Kafka's own assignors: `./dev oracle consumer`, `server` and `streams`."""

from __future__ import annotations

import argparse
import time

from tests.oracle.assignors.differential import Outcome, Side, compare
from tests.oracle.assignors.report import summary
from tests.oracle.build import Built, build
from tests.oracle.jvm import Jvm
from tests.oracle.running import Progress, Seconds, children_cpu, positive

#: Of each assignor.
COUNT = 500


def add_arguments(parser: argparse.ArgumentParser, side: Side) -> None:
    """The command's options."""
    parser.add_argument(
        "--count",
        type=positive,
        default=COUNT * len(side.assignors),
        help=f"cases, the {len(side.assignors)} assignors in turn (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="which cases (default: %(default)s)")
    parser.add_argument(
        "--show", type=int, default=3, help="differences to shrink and print (default: %(default)s)"
    )
    path = side.golden_path
    parser.add_argument(
        "--write-golden", action="store_true", help=f"instead: ask Kafka for {path.name} anew"
    )


def run(options: argparse.Namespace, side: Side) -> int:
    """0: no difference; 1: one at least."""
    built = build()
    if options.write_golden:
        with Jvm(built, side.command) as kafka:
            count = side.write_golden(kafka.ask)
        print(f"{count} cases and Kafka's answers to them written to {side.golden_path}")
        return 0
    outcome, seconds = _timed(built, options, side)
    print(summary(outcome, side, options.seed, seconds))
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
