"""`groupstorm analyze`: figures and tables of traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from groupstorm.cli.printing import (
    Shape,
    print_grid,
    print_indented,
    print_json,
    print_line,
    print_made,
    print_paragraph,
    shape,
)
from groupstorm.figures.accumulator import Window
from groupstorm.pipeline.analysis import Engine
from groupstorm.pipeline.analysis import analyze as analyze_traces
from groupstorm.pipeline.read import find_traces
from groupstorm.pipeline.results import Analysis, Request, RoundsByCause, SlowHandover, why
from groupstorm.pipeline.trace_fold import NOTHING_COUNTED
from groupstorm.problems import CheckFailed
from groupstorm.report.grid import Grid, Row
from groupstorm.report.tables import figures_csv, figures_grid
from groupstorm.units import window_us
from groupstorm.verdicts.comparison import one_run_each
from groupstorm.wording import counted, seconds


def analyze(
    paths: list[Path],
    as_json: bool = False,
    as_csv: bool = False,
    as_markdown: bool = False,
    everything: bool = False,
    check: bool = False,
    out: Path | None = None,
    slowest: int = 5,
    group: list[str] | None = None,
    from_seconds: float = 0,
    to_seconds: float | None = None,
    engine: Engine = Engine.AUTO,
    master: str | None = None,
) -> None:
    """Compute figures and tables from traces, and compare with figures.json, if there is one.

    Prints the figures of all runs side by side, the slowest handovers and why, and the rounds by cause;
    --json prints one JSON object, {run: figures}. Exits 1 if a figures.json says something else.
    """
    chosen_shape = shape(as_json, as_csv, as_markdown)
    window = Window(*window_us(from_seconds, to_seconds))
    request = Request(find_traces(paths), tuple(group or ()), window, slowest, out)
    analysis = analyze_traces(request, engine, master)
    if chosen_shape is Shape.JSON:
        print_json({run: figures.to_json() for run, figures in analysis.figures.items()})
    elif chosen_shape is Shape.CSV:
        print_made(figures_csv(("run",), [((run,), figures) for run, figures in analysis.figures.items()]))
    elif check:
        confirmed, of = len(analysis.confirmed), counted(len(analysis.figures), "run")
        print_paragraph(f"Computed anew from the traces: the same figures in {confirmed} of {of}.")
    else:
        _print(analysis, out, everything, chosen_shape)
    if analysis.disagreements:
        raise CheckFailed("\n".join(analysis.disagreements))


def _print(analysis: Analysis, out: Path | None, everything: bool, chosen_shape: Shape) -> None:
    print_grid(figures_grid("Figures", one_run_each(analysis.figures), everything), chosen_shape)
    for run, figures in analysis.figures.items():
        is_known = figures.unowned_partition_seconds is not None
        slowest = [handover for handover in analysis.handovers if handover.run == run and is_known]
        if slowest:
            print_paragraph(f"Slowest handovers: {run}", emphasized=True)
            for handover in slowest:
                _print_handover(handover)
            print()
    if analysis.rounds:
        print_grid(_rounds_grid(analysis.rounds), chosen_shape)
    for run, figures in analysis.figures.items():
        print_paragraph(f"{run}: {figures.answer}")
    if analysis.uncounted:
        print_paragraph(f"{', '.join(analysis.uncounted)}: {NOTHING_COUNTED}")
    if analysis.confirmed:
        print_paragraph(f"figures.json says the same: {', '.join(analysis.confirmed)}")
    if out is not None:
        print_paragraph(f"Tables in {out}")


def _print_handover(handover: SlowHandover) -> None:
    """One partition, how long it was un-owned and from when on; below it why."""
    more = f" and {handover.partitions - 1} more" if handover.partitions > 1 else ""
    gap, at_s = seconds(handover.gap_us / 1_000_000), f"{handover.from_us / 1_000_000:,.3f} s"
    print_line(f"  {handover.partition}{more}: {gap} from {at_s} on")
    print_indented(why(handover), " " * 6, " " * 6)


def _rounds_grid(rounds: Sequence[RoundsByCause]) -> Grid:
    """A row for each cause of rounds, run by run."""
    rows = [
        Row(
            one.run,
            (
                one.cause,
                f"{one.rounds:,}",
                f"{one.stable:,}",
                "-" if one.members is None else f"{one.members:,}",
                *(
                    "-" if us is None else seconds(us / 1_000_000)
                    for us in (one.latency_avg_us, one.latency_max_us)
                ),
            ),
        )
        for one in rounds
    ]
    headings = ("run", "cause", "rounds", "stable", "members", "mean latency", "max latency")
    return Grid(headings, rows, "Rounds by cause", left=frozenset({0}))
