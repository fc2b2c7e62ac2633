"""`groupstorm trace`: a storm told as a story."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from groupstorm.problems import InputError
from groupstorm.report.story import Filter, tell
from groupstorm.trace.reader import read_rows


def trace(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A run's folder, or a trace.")],
    member: Annotated[
        str | None, typer.Option("--member", help="Tell of one member, by its client id.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="Tell how one partition changed hands: topic-0-17.")
    ] = None,
    from_seconds: Annotated[float, typer.Option("--from", min=0, help="Begin here (virtual seconds).")] = 0,
    to_seconds: Annotated[float | None, typer.Option("--to", min=0, help="End here.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every step of every member.")] = False,
) -> None:
    """Tell a storm as a readable story: who joined, who left, why it rebalanced, what changed hands.

    Example: groupstorm trace runs/rolling-deploy-0 --partition topic-0-17 --from 60 --to 120
    """
    if member is not None and partition is not None:
        raise InputError("--member and --partition: one story at a time")
    to_us = None if to_seconds is None else int(to_seconds * 1_000_000)
    wanted = Filter(member, partition, int(from_seconds * 1_000_000), to_us, everything)
    told = False
    for line in tell(read_rows(path), wanted):
        print(line)
        told = True
    if not told:
        raise InputError(f"{path}: nothing in it matches")
