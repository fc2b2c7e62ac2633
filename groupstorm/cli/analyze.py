"""`groupstorm analyze`: traces on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from groupstorm.cli.options import JsonOption
from groupstorm.pipeline.analysis import Analysis
from groupstorm.pipeline.analysis import analyze as analyze_traces
from groupstorm.pipeline.session import LOCAL
from groupstorm.pipeline.terminal import handovers_table, rounds_table
from groupstorm.problems import CheckFailed
from groupstorm.report.tables import figures_table


def analyze(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="DIR|FILE...", help="Runs, folders of runs (compare), or trace files."),
    ],
    as_json: JsonOption = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the tables as Parquet.")
    ] = None,
    slowest: Annotated[int, typer.Option("--slowest", min=0, help="So many handovers of every run.")] = 5,
    master: Annotated[
        str,
        typer.Option(
            "--master",
            metavar="spark://HOST:PORT",
            help="Workers of a cluster that see the traces under the same paths (compose/spark.yaml).",
            show_default="all cores of this machine",
        ),
    ] = LOCAL,
) -> None:
    """Compute tables and figures from traces, on Spark, and check figures.json where one lies beside.

    Prints the figures of all runs side by side, the slowest handovers and why, and the rounds by cause;
    --json prints one JSON object, {run: figures}. Exits 1 where a figures.json says something else.
    """
    analysis = analyze_traces(paths, out, slowest, master)
    if as_json:
        print(
            json.dumps(
                {run: figures.to_json() for run, figures in analysis.figures.items()}, ensure_ascii=False
            )
        )
    else:
        _print(analysis, out)
    if analysis.disagreements:
        raise CheckFailed("\n".join(analysis.disagreements))


def _print(analysis: Analysis, out: Path | None) -> None:
    console = Console()
    console.print(figures_table("Figures", analysis.figures))
    for run in analysis.figures:
        slowest = [handover for handover in analysis.handovers if handover.run == run]
        if slowest:
            console.print(handovers_table(run, slowest))
    if analysis.rounds:
        console.print(rounds_table(analysis.rounds))
    for run, figures in analysis.figures.items():
        console.print(f"[bold]{run}[/bold]: {figures.answer}", highlight=False)
    if analysis.confirmed:
        console.print(f"figures.json says the same: {', '.join(analysis.confirmed)}", highlight=False)
    if out is not None:
        console.print(f"Tables in {out}", highlight=False)
