"""Sinks that take the rows of a run beside its own trace: a log, a folder of files, a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.runs.step_runner import Progress
from groupstorm.trace.directory import ROTATION_S, DirectorySink
from groupstorm.trace.rows import TraceSink
from groupstorm.trace.writer import Tee


class RunSinks(NamedTuple):
    """``sink``: takes every event; None if nothing was asked for. ``on_progress``: what the run calls now and
    then, so that the rows of a quiet time can be read, too."""

    sink: TraceSink | None
    on_progress: Callable[[], None]


@contextmanager
def run_sinks(
    log: bool, trace: Path | None, trace_to: str | None, clock_s: Callable[[], float] = time.monotonic
) -> Iterator[RunSinks]:
    """Open what was asked for.

    Raises InputError if the folder or the topic cannot take a trace, OutputError if it has not taken all rows
    at the end. After an error the folder keeps the files that were complete.
    """
    sinks: list[TraceSink] = []
    folder: DirectorySink | None = None
    if log:
        from groupstorm.trace.log import LogSink, configure

        configure(timestamps=False)
        sinks.append(LogSink())
    if trace is not None:
        folder = _folder(trace)
        sinks.append(folder)
    if trace_to is not None:
        from groupstorm.trace.topic import TopicSink, read_topic_address

        address = read_topic_address("--trace-to", trace_to)
        sinks.append(TopicSink(address, f"--trace-to {trace_to}", may_wait=True))
    with ExitStack() as unfinished:
        if folder is not None:
            unfinished.callback(folder.discard)
        yield RunSinks(Tee(*sinks) if sinks else None, _regularly(folder, clock_s))
        for sink in sinks:
            sink.close()
        unfinished.pop_all()


def with_progress(on_progress: Callable[[], None], shown: Progress | None) -> Progress:
    """A function that calls ``on_progress`` first, then ``shown``, if progress is shown."""

    def progress(now_us: int, phase: str) -> None:
        on_progress()
        if shown is not None:
            shown(now_us, phase)

    return progress


def _folder(trace: Path) -> DirectorySink:
    try:
        return DirectorySink(trace)
    except OSError as problem:
        raise InputError(f"--trace {trace}: cannot be written: {problem.strerror or problem}") from problem


def _regularly(folder: DirectorySink | None, clock_s: Callable[[], float]) -> Callable[[], None]:
    """Closes the folder's present file if `ROTATION_S` have passed since the last time."""
    last_s = clock_s()

    def rotate() -> None:
        nonlocal last_s
        if folder is not None and clock_s() - last_s >= ROTATION_S:
            folder.rotate()
            last_s = clock_s()

    return rotate
