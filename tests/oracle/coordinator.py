"""`./dev oracle coordinator`: `groupstorm script` against Kafka's GroupCoordinatorService in virtual time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.coordinator import GroupCoordinator
from tests.oracle import golden
from tests.oracle.build import KAFKA, Built, OracleUnavailable, build, build_coordinator
from tests.oracle.differential import Differential, Outcome
from tests.oracle.jvm import Jvm
from tests.oracle.report import summary
from tests.oracle.running import Ask, Progress, add_case_arguments, timed
from tests.oracle.scripts.generator import random_script
from tests.oracle.scripts.group_scripts import KINDS, random_group_script
from tests.oracle.scripts.share_scripts import random_share_script
from tests.oracle.scripts.streams_scripts import random_streams_script

#: The Java side's name for this.
COMMAND = "coordinator"

COUNT = 1_000

#: Streams groups are as Kafka 4.4.0 has them, and asked of it alone.
STREAMS = "streams"

#: Kinds of script -> the script of a seed and a number.
SCRIPTS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "classic": random_script,
    **{kind: partial(random_group_script, kind) for kind in KINDS},
    "share": random_share_script,
    STREAMS: random_streams_script,
}
RELEASES = (KAFKA, "4.4.0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_case_arguments(parser, COUNT, "scripts", golden.PATH.name)
    parser.add_argument(
        "--kind",
        choices=SCRIPTS,
        default="classic",
        help="classic groups, consumer groups (KIP-848), groups that change their protocol, share groups "
        "(KIP-932) or streams groups (KIP-1071, of 4.4.0 alone) (default: %(default)s)",
    )
    parser.add_argument(
        "--kafka", choices=RELEASES, default=RELEASES[-1], help="the release (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """0: no difference; 1: one at least."""
    if options.write_golden:
        with Jvm(build(), COMMAND) as kafka:
            print(f"{golden.write(kafka.ask)} scripts and Kafka's answers to them written to {golden.PATH}")
        return 0
    if options.kind == STREAMS and options.kafka != RELEASES[-1]:
        raise OracleUnavailable(f"streams groups are asked of Kafka {RELEASES[-1]} alone: leave --kafka out")
    built = build_coordinator(options.kafka)
    outcome, seconds = timed(lambda: _compared(built, options))
    scripts = "" if options.kind == "classic" else f"{options.kind} scripts, "
    title = f"Kafka {options.kafka}'s coordinator and ours, {scripts}seed {options.seed}"
    print(summary(outcome, title, seconds, options.kind))
    return 1 if outcome.different else 0


def _compared(built: Built, options: argparse.Namespace) -> Outcome:
    progress = Progress(options.count, "scripts")

    def tell(outcome: Outcome) -> None:
        progress(outcome.coverage.scripts, len(outcome.different))

    with Jvm(built, COMMAND) as kafka:
        release = Compatibility(options.kafka)
        return compare(
            kafka.ask, options.count, options.seed, options.show, tell, kind=options.kind, kafka=release
        )


def compare(
    ask: Ask,
    count: int,
    seed: int,
    shown_max: int,
    on_progress: Callable[[Outcome], None] = lambda outcome: None,
    coordinator: Callable[..., GroupCoordinator] | None = None,
    *,
    kind: str = "classic",
    kafka: Compatibility = Compatibility.KAFKA_4_3_1,
) -> Outcome:
    """The first ``count`` scripts of ``seed`` and ``kind`` through both sides."""
    differential = Differential(ask, coordinator, kafka, shown_max=shown_max, on_progress=on_progress)
    return differential.run(SCRIPTS[kind](seed, number) for number in range(count))
