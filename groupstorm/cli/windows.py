"""The options that choose a part of a trace: groups, and a window of time."""

from __future__ import annotations

from typing import Annotated

import typer

from groupstorm.problems import InputError

MICROSECONDS = 1_000_000

GroupOption = Annotated[
    list[str] | None, typer.Option("--group", help="This group alone. Repeatable. [default: all groups]")
]
FromOption = Annotated[float, typer.Option("--from", min=0, help="Begin here (seconds of the trace).")]
ToOption = Annotated[float | None, typer.Option("--to", min=0, help="End here.")]


def microseconds(from_seconds: float, to_seconds: float | None) -> tuple[int, int | None]:
    """A window in microseconds. Raises InputError if it ends before it begins."""
    if to_seconds is not None and to_seconds < from_seconds:
        raise InputError(f"--to {to_seconds:g}: expected at least {from_seconds:g}, where --from begins")
    return round(from_seconds * MICROSECONDS), None if to_seconds is None else round(
        to_seconds * MICROSECONDS
    )
