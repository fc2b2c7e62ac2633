"""Progress on standard error: of one run its virtual time, of many runs a bar or a line for each tenth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from groupstorm.storms.runs.step_runner import Progress as RunProgress
from groupstorm.visible import visible

#: Takes how many runs are done, and how many there are.
RunsProgress = Callable[[int, int], None]


@contextmanager
def run_progress(name: str, *, virtual: bool = True) -> Iterator[RunProgress]:
    """A function that takes the time of a run so far and its phase; a terminal shows them after ``name``."""
    if not sys.stderr.isatty():
        yield lambda now_us, phase: None
        return
    from rich.console import Console  # a tenth of the start of a command that shows no progress
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as display:
        name = visible(name)
        task = display.add_task(name, total=None)

        def progress(now_us: int, phase: str) -> None:
            seconds = f"{now_us / 1e6:,.0f} {'virtual ' if virtual else ''}seconds"
            display.update(task, description=f"{name}: {seconds}, {phase}")

        yield progress


@contextmanager
def runs_progress() -> Iterator[RunsProgress]:
    """A function that shows the progress of several runs."""
    if not sys.stderr.isatty():
        yield _print_tenths()
        return
    from rich.console import Console  # as above
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("runs", total=None)
        yield lambda done, total: display.update(task, completed=done, total=total)


def _print_tenths() -> RunsProgress:
    shown_tenths = 0

    def progress(done: int, total: int) -> None:
        nonlocal shown_tenths
        if done * 10 // total > shown_tenths:
            shown_tenths = done * 10 // total
            print(f"  {done} of {total} runs", file=sys.stderr, flush=True)

    return progress
