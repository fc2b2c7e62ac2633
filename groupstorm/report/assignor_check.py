"""The property report of an assignor as people read it: tables, and failing histories step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from groupstorm.assignors.check.checking import Finding, Report, Speed
from groupstorm.assignors.check.properties import Verdict
from groupstorm.assignors.check.rendering import render_finding
from groupstorm.assignors.contract import Assignor
from groupstorm.visible import visible

_STYLES = {
    Verdict.HELD: "green",
    Verdict.BROKEN: "bold red",
    Verdict.NOT_PROMISED: "dim",
    Verdict.NEVER_ASKED: "dim",
}


def findings_table(report: Report) -> Table:
    """One row for each property."""
    table = Table(
        title=Text(visible(f"{report.assignor}: {report.histories:,} histories, {report.rounds:,} rounds")),
        title_justify="left",
        header_style="bold",
    )
    for heading in ("property", "verdict", "in histories"):
        table.add_column(heading, no_wrap=heading != "in histories")
    for finding in report.findings:
        style = _STYLES[finding.verdict]
        table.add_row(finding.name, f"[{style}]{finding.verdict}[/{style}]", _how_often(finding))
    return table


def _how_often(finding: Finding) -> str:
    if not finding.asked:
        return "no answer to look at"
    if not finding.failed:
        return f"held in all {finding.asked:,}"
    return f"broken in {finding.failed:,} of {finding.asked:,}"


def summary(report: Report) -> str:
    """Stickiness and rounds in a sentence."""
    changes, moved, fewest = report.stickiness
    most = f"a change took {report.most_rounds} round{'' if report.most_rounds == 1 else 's'} at most"
    if not changes:
        return f"Of no change the fewest moves are known; {most}."
    more = f", {moved - fewest:,} more than needed" if moved > fewest else ""
    return f"In {changes:,} changes whose optimum is known {moved:,} partitions moved{more}; {most}."


def failures(assignor: Assignor, report: Report, with_unpromised: bool = False) -> Iterator[str]:
    """The smallest failing history of every broken promise, line by line."""
    for finding in report.findings:
        unpromised = finding.verdict is Verdict.NOT_PROMISED and finding.failed > 0
        if finding.verdict is Verdict.BROKEN or (with_unpromised and unpromised):
            yield ""
            yield f"{finding.name}: the smallest failing history that was found"
            for line in render_finding(assignor, finding):
                yield f"  {line}"


def speed_table(speeds: Sequence[Speed]) -> Table:
    """The cost of answers, a row for every size of group."""
    table = Table(
        title="CPU milliseconds for a change (10 topics, all subscribe alike)",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("members x partitions", no_wrap=True)
    for heading in ("empty start", "one more", "a tenth leaves"):
        table.add_column(heading, justify="right")
    for row in speeds:
        phases = (row.empty_start_ms, row.one_more_ms, row.tenth_leaves_ms)
        table.add_row(f"{row.size.members:,} x {row.size.partitions:,}", *map(_shown_ms, phases))
    return table


def _shown_ms(value: float | None) -> str:
    return "no answer" if value is None else f"{value:,.1f}"
