"""The trace that a running broker writes into a folder or a topic, and what happens if it cannot be written.

The broker is more important than its trace: a trace that cannot be written ends, and the broker serves on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from groupstorm.problems import InputError, OutputError
from groupstorm.trace.events.coordinator import Event
from groupstorm.trace.schema import Source
from groupstorm.trace.topic import TopicSink
from groupstorm.trace.writer import DirectorySink


def trace_in_folder(folder: Path, named: str, on_failure: Callable[[str], None]) -> BrokerTrace:
    """A trace in the files of one folder. Raises InputError if the folder cannot hold one."""
    try:
        return BrokerTrace(DirectorySink(folder), named, on_failure)
    except OSError as problem:
        raise InputError(f"{named}: cannot be written: {problem.strerror or problem}") from problem


class BrokerTrace:
    """Writes events into a folder or a topic until `close`, or until one cannot be written."""

    def __init__(
        self, sink: DirectorySink | TopicSink, named: str, on_failure: Callable[[str], None]
    ) -> None:
        """``named``: the option, for messages. ``on_failure`` receives one line, once."""
        self._named = named
        self._on_failure = on_failure
        self._events = 0
        self._problem: OutputError | None = None
        self._sink = sink

    def add(self, time_us: int, events: Sequence[Event]) -> None:
        """Count the events, and write them unless the trace has ended."""
        self._events += len(events)

        def write(sink: DirectorySink | TopicSink) -> None:
            for event in events:
                sink.add(time_us, Source.COORDINATOR, event)

        self._attempt(write)

    def rotate(self) -> None:
        """Close the present file, so that the events so far are readable."""
        self._attempt(lambda sink: sink.rotate())

    def close(self) -> None:
        self._attempt(lambda sink: sink.close())

    def check(self) -> None:
        """Raises OutputError if the trace does not hold every event."""
        if self._problem is not None:
            raise OutputError(
                f"{self._named}: the trace is incomplete: {_reason(self._problem)}: "
                f"it holds {self._written()} of {self._events}"
            )

    def _attempt(self, write: Callable[[DirectorySink | TopicSink], None]) -> None:
        if self._problem is not None:
            return
        try:
            write(self._sink)
        except OutputError as problem:
            self._problem = problem
            self._sink.discard()
            self._on_failure(
                f"{self._named}: cannot be written: {_reason(problem)}: the trace ends with "
                f"{self._written()}, the broker goes on without it"
            )

    def _written(self) -> str:
        count = self._sink.readable_rows
        return f"the first {count} events" if count else "no event"


def _reason(problem: OutputError) -> str:
    """The system's reason, without the name of the file: the message names the folder."""
    cause = problem.__cause__
    return (isinstance(cause, OSError) and cause.strerror) or str(problem)
