"""A run against Kafka's own assignors: `./dev oracle consumer`, `server` and `streams`."""

from __future__ import annotations

import argparse

from tests.oracle.assignors.differential import Outcome, Side, compare
from tests.oracle.assignors.report import summary
from tests.oracle.build import Built, build
from tests.oracle.jvm import Jvm
from tests.oracle.running import Progress, add_case_arguments, timed

#: Of each assignor.
COUNT = 500


def add_arguments(parser: argparse.ArgumentParser, side: Side) -> None:
    """The command's options."""
    count = len(side.assignors)
    cases = f"cases, the {count} assignors in turn"
    add_case_arguments(parser, COUNT * count, cases, side.golden_path.name)


def run(options: argparse.Namespace, side: Side) -> int:
    """0: no difference; 1: one at least."""
    built = build()
    if options.write_golden:
        with Jvm(built, side.command) as kafka:
            count = side.write_golden(kafka.ask)
        print(f"{count} cases and Kafka's answers to them written to {side.golden_path}")
        return 0
    outcome, seconds = timed(lambda: _compared(built, options, side))
    print(summary(outcome, side, options.seed, seconds))
    return 1 if outcome.different else 0


def _compared(built: Built, options: argparse.Namespace, side: Side) -> Outcome:
    progress = Progress(options.count, "cases")

    def tell(outcome: Outcome) -> None:
        progress(outcome.count, len(outcome.different))

    with Jvm(built, side.command) as kafka:
        cases = side.random_cases(options.seed, options.count)
        return compare(side, kafka.ask, cases, shown_max=options.show, on_progress=tell)
