"""The progress of many runs on standard error: a bar on a terminal, a line for each tenth elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def runs_progress() -> Iterator[Callable[[int, int], None]]:
    """A function that takes how many runs are done, and how many there are."""
    shown_tenths = 0
    console = Console(stderr=True)
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as display:
        task = display.add_task("runs", total=None)

        def progress(done: int, total: int) -> None:
            nonlocal shown_tenths
            display.update(task, completed=done, total=total)
            if not sys.stderr.isatty() and done * 10 // total > shown_tenths:
                shown_tenths = done * 10 // total
                print(f"  {done} of {total} runs", file=sys.stderr, flush=True)

        yield progress
