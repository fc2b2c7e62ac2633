"""The views of a trace beside its story: a picture, lanes for Perfetto, OpenTelemetry spans."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from time import time_ns
from typing import Final, NamedTuple

from groupstorm.cli.printing import print_line, print_made, print_paragraph, width
from groupstorm.explain.explanation import explain
from groupstorm.figures.accumulator import Window
from groupstorm.imports.times import instant
from groupstorm.problems import InputError
from groupstorm.report.lanes.otlp import Exporter, check_installed, destination
from groupstorm.report.lanes.perfetto import write_perfetto
from groupstorm.report.lanes.picture import Line, Recording, picture
from groupstorm.report.lanes.spans import Joins, spans
from groupstorm.report.story import require
from groupstorm.wording import counted

_PLAIN: Final = "\x1b[0m"
#: Character of a picture -> its colour.
_COLOURS: Final = {
    "#": "\x1b[32m",
    "+": "\x1b[33m",
    **dict.fromkeys("jJ", "\x1b[31m"),
    **dict.fromkeys("pPcCaArR", "\x1b[35m"),
    "x": "\x1b[1m",
    "?": "\x1b[2m",
    **dict.fromkeys("123456789", "\x1b[31m"),
}


class Part(NamedTuple):
    """The part of a trace that is shown: these groups (none: all) in this window."""

    path: Path
    groups: Sequence[str]
    window: Window


def print_timeline(part: Part, member: str | None) -> None:
    """Print a picture for each group. Raises InputError for a name that the trace does not have."""
    recordings: dict[str, Recording] = {}

    def reader(group: str, _from_us: int) -> Recording:
        return recordings.setdefault(group, Recording())

    explanations = explain(part.path, frozenset(part.groups), part.window, reader)
    if member is not None:
        members = chain.from_iterable(one.members.values() for one in recordings.values())
        require("--member", member, chain.from_iterable(one.names for one in members))
    is_chosen = None if member is None else lambda one: member in one.names
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for number, one in enumerate(explanations):
        drawn = picture(one, recordings[one.history.group], width(), part.window.from_us, is_chosen)
        if number:
            print()
        print_line(drawn.title)
        for index, line in enumerate(drawn.lines):
            print_made(_coloured(line) if coloured and index else " ".join(line).rstrip(), end="\n")
        for note in drawn.notes:
            print_made(note, end="\n")


def write_lanes(part: Part, out: Path) -> None:
    """Write Chrome's trace events. Raises InputError, OutputError."""
    events = write_perfetto(part.path, out, frozenset(part.groups), part.window)
    print_paragraph(f"{counted(events, 'event')} in {out}: open it in https://ui.perfetto.dev")


def send_spans(part: Part, target: str, begin: str | None) -> None:
    """Write spans, or send them. Raises InputError, OutputError."""
    begun = None if begin is None else _begun(begin)  # before a long trace is read
    check_installed()
    joins: dict[str, Joins] = {}

    def reader(group: str, _from_us: int) -> Joins:
        return joins.setdefault(group, Joins())

    explanations = explain(part.path, frozenset(part.groups), part.window, reader)
    sent, now_ns = 0, time_ns()
    with destination(target) as export:
        for one in explanations:
            history = one.history
            began_us = _begun(history.began) if begun is None and history.began else begun
            began_ns = now_ns - history.to_us * 1000 if began_us is None else began_us * 1000
            exporter = Exporter(history.group, str(part.path), began_ns, export)
            for root in spans(history, joins[history.group]):
                exporter.add(root)
            exporter.finish()
            sent += exporter.count
    print_paragraph(f"{counted(sent, 'span')} of {counted(len(explanations), 'group')} in {target}")


def _begun(text: str) -> int:
    """A time in microseconds since 1970; without a zone it is UTC. Raises InputError."""
    found = instant(text, "iso")
    if found is None:
        raise InputError(f"--begin {text}: expected a time like 2026-01-31T12:00:00Z")
    return found.us


def _coloured(line: Line) -> str:
    cells = "".join(f"{_COLOURS[cell]}{cell}{_PLAIN}" if cell in _COLOURS else cell for cell in line.cells)
    return f"{line.label} {cells}"
