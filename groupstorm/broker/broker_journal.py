"""The journal (`serve --data`) and the trace that a running broker writes, and what happens if they cannot be
written.

A client must not see an answer that a restart would forget. A broker whose journal cannot be written, as the
disk is full, therefore answers nothing more and ends. But the broker is more important than its trace: a
trace that cannot be written ends, and the broker serves on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from groupstorm.broker.broker import Broker
from groupstorm.broker.changes import Change, TopicCreated
from groupstorm.broker.data_directory import DataDirectory, PartitionName
from groupstorm.broker.journal import BEGINNING
from groupstorm.broker.log.batches import Batch
from groupstorm.broker.state import created
from groupstorm.coordinator.share.group import ShareGroup
from groupstorm.history.unknown import OWNERSHIP, WITHOUT_OWNERS
from groupstorm.problems import InputError, OutputError
from groupstorm.trace.events.coordinator import Event, GroupCreated
from groupstorm.trace.events.imported import EvidenceMissing
from groupstorm.trace.schema import Source
from groupstorm.trace.topic import TopicSink
from groupstorm.trace.writer import DirectorySink

#: Makes a broker of the changes that an earlier one has written, and of the time in ms since 1970.
MakeBroker = Callable[[Iterable[Change], int], Broker]


class BrokerJournal:
    """Holds every change of one broker before anybody sees the change."""

    def __init__(
        self,
        folder: Path,
        on_failure: Callable[[], None],
        on_warning: Callable[[str], None],
        accept_loss: bool = False,
    ) -> None:
        """``on_failure`` ends the broker; ``on_warning`` receives a line about a journal that was
        cut off at its end, or that stays long; ``accept_loss``: see `DataDirectory`.

        Raises InputError if the folder cannot be used.
        """
        self._directory = DataDirectory(folder, on_warning, accept_loss)
        self._on_failure = on_failure
        self._on_warning = on_warning
        self._broker: Broker | None = None
        self._problem: OutputError | InputError | None = None
        self._accept_loss = accept_loss
        self._unread = (0, BEGINNING)

    def restart(self, make_broker: MakeBroker, now_ms: int) -> Broker:
        """Make the broker that goes on from the journal. The journal goes on too, with the topics that the
        broker has made now, unless a new one with the broker's state would be much shorter.

        Raises InputError if the journal is damaged, and OutputError.
        """
        self._broker, kept = self._read(make_broker, now_ms)
        topics = self._broker.state.topics
        goes_on = self._directory.go_on(self._live_bytes())
        topics.store.file = self._directory
        if goes_on:
            made = [created(topic) for topic in topics if topic.topic_id not in kept]
            if made:
                self._directory.append(made)
        else:
            self._place_all(self._directory.rewrite(self._broker.snapshot()))
        self._unread = self._directory.checkpointed if goes_on else (0, BEGINNING)
        if self._directory.wants_checkpoint:
            self.checkpoint()
        return self._broker

    def _read(self, make_broker: MakeBroker, now_ms: int) -> tuple[Broker, set[uuid.UUID]]:
        """The broker, and the topics of the journal. Raises InputError."""
        try:
            return self._made(make_broker, now_ms, use_checkpoint=not self._accept_loss)
        except InputError:
            if not self._directory.checkpointed[0]:
                raise
        # the journal itself decides
        return self._made(make_broker, now_ms, use_checkpoint=False)

    def _made(
        self, make_broker: MakeBroker, now_ms: int, use_checkpoint: bool
    ) -> tuple[Broker, set[uuid.UUID]]:
        kept: set[uuid.UUID] = set()

        def changes() -> Iterator[Change]:
            for change in self._directory.read(use_checkpoint):
                if isinstance(change, TopicCreated):
                    kept.add(change.topic_id)
                yield change

        return make_broker(changes(), now_ms), kept

    def add(self, changes: Sequence[Change]) -> bool:
        """Write the changes of one step; False: the step must not be answered."""
        if self._problem is not None:
            return False
        try:
            placed = self._directory.append(changes)
        except OutputError as problem:
            self.fail(problem)
            return False
        assert self._broker is not None
        topics = self._broker.state.topics
        for change, position in placed:
            log = topics.partition(change.name, change.partition)
            if log is not None:  # it may be gone again, with its topic
                log.batches.place(Batch.read(change.data).base_offset, position)
        if self._directory.wants_rewriting:
            self._shorten()
        if self._directory.wants_checkpoint:
            self.checkpoint()
        return True

    def fail(self, problem: OutputError | InputError) -> None:
        """End the broker."""
        self._problem = problem
        self._on_failure()

    def _shorten(self) -> None:
        """Write a new journal if that makes it much shorter. The journal is complete as it is: if another one
        cannot be written, the broker goes on."""
        assert self._broker is not None
        if not self._directory.is_much_longer_than(self._live_bytes()):
            self._directory.put_off_rewriting()
            return
        try:
            self._place_all(self._directory.rewrite(self._broker.snapshot()))
        except OutputError as problem:
            self._directory.put_off_rewriting()
            self._on_warning(f"{problem}: the journal stays as long as it is")

    def _live_bytes(self) -> int:
        """The size of all records."""
        assert self._broker is not None
        return sum(log.size_bytes for topic in self._broker.state.topics for log in topic.partitions)

    def _place_all(self, positions: Mapping[PartitionName, Sequence[int]]) -> None:
        assert self._broker is not None
        for name, of_log in positions.items():
            log = self._broker.state.topics.partition(*name)
            assert log is not None
            log.batches.place_all(of_log)

    def checkpoint(self) -> None:
        """Write a checkpoint, so that a restart need not read the journal in front of it. Without one the
        restart takes longer: if it cannot be written, the broker goes on."""
        if self._broker is None or self._problem is not None or self._directory.is_checkpointed:
            return
        try:
            self._directory.write_checkpoint(self._broker.snapshot(in_file=True))
        except OutputError as problem:
            self._directory.put_off_checkpoint()
            self._on_warning(f"{problem}: the next start reads more of the journal")

    def check_unread(self, is_ended: Callable[[], bool]) -> InputError | None:
        """Look at the part of the journal that the restart has not read; return its damage, for `fail`. For a
        thread of its own; returns early if ``is_ended()``."""
        end, place = self._unread
        if not end:
            return None
        try:
            self._directory.check_frames(end, place, is_ended)
        except InputError as problem:
            return problem
        return None

    def close(self) -> None:
        self._directory.close()

    def check(self) -> None:
        """Raises OutputError if the broker has ended because its journal could not be written, and InputError
        if it has ended because the journal is damaged."""
        if isinstance(self._problem, InputError):
            raise self._problem
        if self._problem is not None:
            raise OutputError(
                f"{self._problem}: the broker has ended; the journal holds all that was answered"
            )


def trace_in_folder(folder: Path, named: str, on_failure: Callable[[str], None]) -> BrokerTrace:
    """A trace in the files of one folder. Raises InputError if the folder cannot hold one."""
    try:
        return BrokerTrace(DirectorySink(folder), named, on_failure)
    except OSError as problem:
        raise InputError(f"{named}: cannot be written: {problem.strerror or problem}") from problem


def traced(broker: Broker, events: Sequence[Event]) -> Iterator[Event | EvidenceMissing]:
    """The events, and behind that of a new share group that nobody owns its partitions."""
    for event in events:
        yield event
        if isinstance(event, GroupCreated) and isinstance(broker.coordinator.group(event.group), ShareGroup):
            yield EvidenceMissing(event.group, OWNERSHIP, None, WITHOUT_OWNERS["share"])


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

    def add(self, time_us: int, events: Sequence[Event | EvidenceMissing]) -> None:
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
