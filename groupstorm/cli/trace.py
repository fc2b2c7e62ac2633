"""`groupstorm trace`: a trace as a readable story."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from groupstorm.cli.printing import print_line
from groupstorm.figures.accumulator import Window
from groupstorm.problems import InputError
from groupstorm.report.story import Selection, names_by_group, require, story
from groupstorm.trace.reader import read_rows
from groupstorm.units import window_us


def trace(
    path: Path,
    member: str | None = None,
    partition: str | None = None,
    group: list[str] | None = None,
    from_seconds: float = 0,
    to_seconds: float | None = None,
    everything: bool = False,
    timeline: bool = False,
    perfetto: Path | None = None,
    otlp: str | None = None,
    begin: str | None = None,
) -> None:
    """Print a trace as a readable story: who joined, who left, why it rebalanced, what changed hands.

    --timeline draws it instead; --perfetto and --otlp write it for other viewers.

    Example: groupstorm trace runs/rolling-deploy-0 --partition topic-0-17 --from 60 --to 120
    """
    if member is not None and partition is not None:
        raise InputError("--member and --partition: one story at a time")
    from_us, to_us = window_us(from_seconds, to_seconds)
    views = {"--timeline": timeline, "--perfetto": perfetto, "--otlp": otlp}
    view = next((option for option, value in views.items() if value), None)
    if view is None and begin is not None:
        raise InputError("--begin: needs --otlp")
    if view is not None:
        others = {"--partition": partition, "--all": everything}
        others |= {"--member": member} if view != "--timeline" else {}
        others |= {"--begin": begin} if view != "--otlp" else {}
        for option, value in (others | views).items():
            if value and option != view:
                raise InputError(f"{view}: expected no {option}")
        from groupstorm.cli.trace_views import Part, print_timeline, send_spans, write_lanes

        of_trace = Part(path, group or [], Window(from_us, to_us))
        if perfetto is not None:
            write_lanes(of_trace, perfetto)
        elif otlp is not None:
            send_spans(of_trace, otlp, begin)
        else:
            print_timeline(of_trace, member)
        return
    groups, width = _check_names(path, group or [], member, partition)
    empty = True
    selection = Selection(groups, width, member, partition, from_us, to_us, everything)
    for line in story(read_rows(path), selection):
        print_line(line)
        empty = False
    if empty and partition is not None:
        raise InputError(
            f"--partition {partition}: no row of a member in this time names it "
            "(of a trace without rows of members, groupstorm analyze shows the handovers)"
        )
    if empty:
        raise InputError(f"{path}: nothing in it matches")


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
