"""`groupstorm trace`: a trace as a readable story."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from groupstorm.cli.windows import FromOption, GroupOption, ToOption, microseconds
from groupstorm.imports.printing.logs import LogKind, as_log
from groupstorm.problems import InputError
from groupstorm.report.inventory import names_by_group, require
from groupstorm.report.story import Selection, story
from groupstorm.trace.reader import read_rows


def trace(
    path: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="A run's folder, or a trace.")],
    member: Annotated[
        str | None, typer.Option("--member", help="The story of one member, by its client id.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="How one partition changed hands: topic-0-17.")
    ] = None,
    group: GroupOption = None,
    from_seconds: FromOption = 0,
    to_seconds: ToOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Every step of every member.")] = False,
    as_kind: Annotated[
        LogKind | None,
        typer.Option(
            "--as", help="Print the log that Kafka's broker, or its Java clients, would have written."
        ),
    ] = None,
) -> None:
    """Print a trace as a readable story: who joined, who left, why it rebalanced, what changed hands.

    Example: groupstorm trace runs/rolling-deploy-0 --partition topic-0-17 --from 60 --to 120
    """
    if member is not None and partition is not None:
        raise InputError("--member and --partition: one story at a time")
    from_us, to_us = microseconds(from_seconds, to_seconds)
    groups, width = _check_names(path, group or [], member, partition)
    empty = True
    selection = Selection(groups, width, member, partition, from_us, to_us, everything)
    for line in story(read_rows(path), selection) if as_kind is None else _log(path, as_kind, selection):
        print(line)
        empty = False
    if empty and partition is not None:
        raise InputError(
            f"--partition {partition}: no row of a member in this time names it "
            "(of a trace without rows of members, groupstorm analyze shows the handovers)"
        )
    if empty:
        raise InputError(f"{path}: nothing in it matches")


def _log(path: Path, kind: LogKind, selection: Selection) -> Iterator[str]:
    """The trace as a log. Raises InputError for a choice that a log does not know."""
    if selection.partition is not None or selection.everything:
        raise InputError(f"--as {kind}: expected neither --partition nor --all")
    return as_log((row for row in read_rows(path) if selection.has(row)), kind)


def _check_names(
    path: Path, groups: list[str], member: str | None, partition: str | None
) -> tuple[frozenset[str] | None, int]:
    """The groups of the story and the width of their column. Raises InputError for an unknown name."""
    if next((row["event"] for row in read_rows(path)), None) == "scenario_started" and not (
        groups or member or partition
    ):
        return None, 0  # a storm's trace has one group: no need to read it twice
    names = names_by_group(read_rows(path))
    for group in groups:
        require("--group", group, names)
    chosen = [names[group] for group in groups] or [*names.values()]
    if member is not None:
        require("--member", member, chain.from_iterable(one.members for one in chosen))
    if partition is not None:
        require("--partition", partition, chain.from_iterable(one.partitions for one in chosen))
    width = max(map(len, groups or names)) if len(chosen) > 1 else 0
    return frozenset(groups) or None, width
