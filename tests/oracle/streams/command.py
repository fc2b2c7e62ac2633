"""`./dev oracle streams`: `groupstorm assign --mode streams` against the task assignors of Kafka Streams."""

from __future__ import annotations

import argparse
import time

from tests.oracle.build import build
from tests.oracle.jvm import Jvm
from tests.oracle.running import Progress, Seconds, children_cpu, positive
from tests.oracle.streams import golden
from tests.oracle.streams.comparison import Outcome, compare
from tests.oracle.streams.drawing import ASSIGNORS, random_cases
from tests.oracle.streams.report import summary

_COUNT = 2_100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--count",
        type=positive,
        default=_COUNT,
        help=f"cases, the {len(ASSIGNORS)} assignors in turn (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="which cases (default: %(default)s)")
    parser.add_argument(
        "--show", type=int, default=3, help="differences to shrink and print (default: %(default)s)"
    )
    parser.add_argument(
        "--write-golden", action="store_true", help=f"instead: ask Kafka for {golden.PATH.name} anew"
    )


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    built = build()
    if options.write_golden:
        with Jvm(built, "streams") as kafka:
            count = golden.write(kafka.ask)
        print(f"{count} cases and Kafka's answers to them written to {golden.PATH}")
        return 0
    start, children = time.perf_counter(), children_cpu()
    progress = Progress(options.count, "cases")

    def tell(outcome: Outcome) -> None:
        progress(outcome.count, len(outcome.different))

    with Jvm(built, "streams") as kafka:
        outcome = compare(
            kafka.ask, random_cases(options.seed, options.count), shown_max=options.show, on_progress=tell
        )
    seconds = Seconds(children_cpu() - children, outcome.our_cpu_seconds, time.perf_counter() - start)
    print(summary(outcome, f"Kafka 4.3.1's task assignors and ours, seed {options.seed}", seconds))
    return 1 if outcome.different else 0
