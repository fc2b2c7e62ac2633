"""`groupstorm check-assignor`: the properties that an assignor promises, on random histories."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from rich.console import Console
from rich.markup import escape as markup_escape

from groupstorm.assignors import registry
from groupstorm.assignors.check.checking import Report, check, drawn
from groupstorm.assignors.check.properties import Verdict
from groupstorm.assignors.check.rendering import report_to_json
from groupstorm.assignors.check.speed import Speed, measure
from groupstorm.assignors.contract import Assignor, MapOrder
from groupstorm.cli.assignors_under_test import Limited, other_processes
from groupstorm.cli.printing import print_json
from groupstorm.problems import CheckFailed
from groupstorm.report.assignor_check import failures, findings_table, speed_table, summary
from groupstorm.visible import visible

#: Answers to large groups may take longer than those to the small ones of histories.
SPEED_LIMIT_MS = 20_000


def check_assignor(
    name: str,
    seed: int = 0,
    count: int = 200,
    limit_ms: int = 1_000,
    order: MapOrder = MapOrder.JAVA_HASH,
    bug_compat: bool = False,
    speed: bool = True,
    every: bool = False,
    as_json: bool = False,
) -> None:
    """Play random histories of a group with an assignor and hold it to its promises.

    Members join, leave, return, miss an assignment and change their subscriptions; topics grow, disappear and
    return smaller. The command prints every property, and for a broken one the smallest failing history that
    it finds. It exits with 1 if a promise is broken.
    """
    assignor = registry.get(name, order=order, bug_compat=bug_compat)
    limited = Limited(assignor, limit_ms)
    console = Console(stderr=as_json)
    shown = markup_escape(visible(assignor.name))
    with (
        redirect_stdout(sys.stderr),  # what a plug-in prints is no part of the report
        console.status(f"{shown}: {count} histories") as status,
        other_processes(name, order, bug_compat, limit_ms) as elsewhere,
    ):
        report = check(
            limited,
            drawn(limited, seed, count),
            elsewhere,
            lambda done: status.update(f"{shown}: {done} of {count} histories"),
        )
        status.update(f"{shown}: how fast is it?")
        speeds = _speeds(assignor) if speed else []
    if as_json:
        print_json(report_to_json(report) | {"seed": seed, "speed": _to_json(speeds)})
    else:
        _print(console, limited, report, speeds, every)
    broken = [finding.name for finding in report.findings if finding.verdict is Verdict.BROKEN]
    if broken:
        raise CheckFailed(f"{assignor.name} breaks its promises: {', '.join(broken)}")


def _speeds(assignor: Assignor) -> list[Speed]:
    return list(measure(Limited(assignor, SPEED_LIMIT_MS), time.process_time_ns))


def _to_json(speeds: Sequence[Speed]) -> list[dict[str, Any]]:
    return [row.size._asdict() | {k: v for k, v in row._asdict().items() if k != "size"} for row in speeds]


def _print(
    console: Console, assignor: Assignor, report: Report, speeds: Sequence[Speed], every: bool
) -> None:
    console.print(findings_table(report))
    console.print(summary(report), highlight=False)
    if speeds:
        console.print(speed_table(speeds))
    for line in failures(assignor, report, every):
        console.print(visible(line), highlight=False, markup=False, soft_wrap=True)
