"""`groupstorm explain`: why a group rebalanced, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.explained import print_explanation
from groupstorm.cli.output_options import JsonOption
from groupstorm.cli.printing import print_json
from groupstorm.cli.windows import FromOption, GroupOption, ToOption, microseconds
from groupstorm.explain.as_json import as_json
from groupstorm.explain.explanation import explain as explain_trace
from groupstorm.explain.logs import log_lines
from groupstorm.figures.by_group import Window
from groupstorm.report.story import sentence


def explain(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE", help="The folder of a run, of an import, or of serve --trace; or a trace."
        ),
    ],
    as_json_object: JsonOption = False,
    group: GroupOption = None,
    from_seconds: FromOption = 0,
    to_seconds: ToOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Every rebalance, one line each.")] = False,
) -> None:
    """Say why a group rebalanced: named patterns, who caused them, what they cost, what to turn.

    Prints how often the group rebalanced against its own baseline, the patterns with the rows or log lines
    that show them (defects, failures, changes; of each the costliest first), and who began the rebalances.
    The cost is the time in which partitions had no owner, summed over partitions, if the trace knows who
    owned what. docs/explain.md has every pattern's rule.

    Example: groupstorm explain runs/rolling-deploy-0
    """
    window = Window(*microseconds(from_seconds, to_seconds))
    explanations = explain_trace(path, frozenset(group or ()), window)
    if as_json_object:
        groups = [as_json(one, sentence) for one in explanations]
        print_json({"trace": str(path), "groups": groups})
        return
    places = (
        place
        for one in explanations
        for finding in one.findings
        for row in finding.match.evidence
        for place in row.get("evidence") or ()
    )
    lines = log_lines(places) if any(one.history.is_imported for one in explanations) else {}
    for number, one in enumerate(explanations):
        if number:
            print()
        print_explanation(one, lines, everything)
