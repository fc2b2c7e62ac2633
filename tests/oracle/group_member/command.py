"""`./dev oracle group-member`: a member of a consumer group against Kafka's own classes, in virtual time."""

from __future__ import annotations

import argparse

from tests.oracle.build import build
from tests.oracle.group_member.drawing import draw
from tests.oracle.group_member.recordings import GOLDEN, ask, difference, write_golden
from tests.oracle.group_member.situations import SITUATIONS

COUNT = 5_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"how many scripts to draw (default {COUNT})"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first script (default 0)")
    parser.add_argument("--write-golden", action="store_true", help=f"record {GOLDEN.name} anew as well")


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    built = build()
    table = list(ask(built, SITUATIONS))
    if options.write_golden:
        write_golden(table)
        print(f"{len(table)} recordings of Kafka's classes written to {GOLDEN}")
    differing = [found for one in table if (found := difference(*one))]
    drawn = (draw(number) for number in range(options.first, options.first + options.count))
    scripts = [found for one in ask(built, drawn) if (found := difference(*one))]
    for found in (*differing, *scripts):
        print(found)
    print(f"situations: {len(table)}; different: {len(differing)}")
    print(f"scripts: {options.count:,}; different: {len(scripts)}")
    return 1 if differing or scripts else 0
