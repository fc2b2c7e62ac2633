"""Options on the output of a command, on the part of a trace, and on a copy of it.

This module imports nothing of storms: `analyze` and `serve` start without them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from groupstorm.problems import InputError

JsonOption = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output instead of tables.")
]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="Comma-separated values on standard output: a row per run, exact.")
]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="The tables in Markdown.")]
AllOption = Annotated[bool, typer.Option("--all", help="All figures in the table, not only the first ones.")]

GroupOption = Annotated[
    list[str] | None, typer.Option("--group", help="This group alone. Repeatable. [default: all groups]")
]
FromOption = Annotated[float, typer.Option("--from", min=0, help="Begin here (seconds of the trace).")]
ToOption = Annotated[float | None, typer.Option("--to", min=0, help="End here.")]
FormatOption = Annotated[str, typer.Option("--format", help="Format of the trace: jsonl or parquet.")]
TraceToOption = Annotated[
    str | None,
    typer.Option(
        "--trace-to",
        metavar="HOST:PORT/TOPIC",
        help="Produce the rows of the trace to an empty topic of another broker (docs/watch.md).",
    ),
]

MICROSECONDS = 1_000_000


def microseconds(from_seconds: float, to_seconds: float | None) -> tuple[int, int | None]:
    """A window in microseconds. Raises InputError if it ends before it begins."""
    if to_seconds is not None and to_seconds < from_seconds:
        raise InputError(f"--to {to_seconds:g}: expected at least {from_seconds:g}, where --from begins")
    to_us = None if to_seconds is None else round(to_seconds * MICROSECONDS)
    return round(from_seconds * MICROSECONDS), to_us
