"""`./dev oracle streams-thread`: a member of a streams group against Kafka's own classes, in virtual time."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.oracle.build import build_streams_thread
from tests.oracle.group_member.recordings import Difference, Recording, asked, difference
from tests.oracle.group_member.situation import Situation
from tests.oracle.streams_thread.drawing import draw
from tests.oracle.streams_thread.playing import play

KAFKA = "4.4.0"
COUNT = 5_000
#: So many scripts, from the first one on, are kept.
KEPT = 60
GOLDEN = Path(__file__).resolve().parent / "golden" / f"recordings.kafka-{KAFKA}.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"how many scripts to draw (default {COUNT})"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first script (default 0)")
    parser.add_argument("--write-golden", action="store_true", help=f"record {GOLDEN.name} anew as well")


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    if options.write_golden:
        lines = [
            json.dumps({"script": one.name, "steps": recording}, separators=(",", ":"), sort_keys=True)
            for one, recording in ask(map(draw, range(KEPT)))
        ]
        GOLDEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} recordings of Kafka's classes written to {GOLDEN}")
    drawn = map(draw, range(options.first, options.first + options.count))
    differing = [found for one in ask(drawn) if (found := difference_of(*one))]
    for found in differing:
        print(found)
    print(f"scripts: {options.count:,}; different: {len(differing)}")
    return 1 if differing else 0


def ask(situations: Iterable[Situation]) -> Iterator[tuple[Situation, Recording]]:
    """Ask Kafka's StreamsMembershipManager and StreamsGroupHeartbeatRequestManager."""
    return asked(build_streams_thread(KAFKA), "", situations)


def difference_of(situation: Situation, kafka: Recording) -> Difference | None:
    """A script ends where Kafka's classes contradict themselves and throw."""
    return difference(situation._replace(steps=situation.steps[: len(kafka)]), kafka, play)


def read_golden() -> Mapping[str, Recording]:
    """Recordings by the number of their script."""
    with GOLDEN.open(encoding="utf-8") as lines:
        return {one["script"]: one["steps"] for one in map(json.loads, lines)}
