"""From records of `__consumer_offsets` to observations: transactions, and commits of several partitions."""

from __future__ import annotations

from groupstorm.imports.observation import Observation
from groupstorm.imports.offsets_topic.meaning import (
    COMMITTED,
    LATEST_MS,
    NOTED,
    Meaning,
    NotUnderstood,
    meaning,
    topic_names,
)
from groupstorm.imports.offsets_topic.schemas import WrittenRecord
from groupstorm.imports.prefixes import Writer
from groupstorm.imports.source import LogSource


class RecordObserver:
    """Takes the records of one partition in the order of their offsets; `ready` gives the observations.

    Offsets that a transaction commits count from its marker on, and not at all if it aborts (KIP-98).
    Offsets of one group that were committed at one time are one observation.
    """

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._pending: dict[int, list[tuple[WrittenRecord, int]]] = {}
        self._found: list[Observation] = []
        self._commit: Observation | None = None
        source.writers.add(Writer.OFFSETS_TOPIC)
        source.clock.step_us = 1000

    def take(self, record: WrittenRecord, line: int, transaction: int | None = None) -> None:
        """``transaction``: the producer of the transaction that the record belongs to, if it does."""
        if transaction is not None:
            self._pending.setdefault(transaction, []).append((record, line))
            return
        try:
            if record.time_ms is not None and not 0 <= record.time_ms <= LATEST_MS:
                raise NotUnderstood("a time before 1970, or after the year 9999")
            said = meaning(record)
            self._source.topic_names.update(topic_names(record))
        except NotUnderstood as problem:
            self._source.count_not_understood(str(problem), f"{record.key_type}: {problem}"[:80])
            return
        self._source.understood += 1
        if said.kind != NOTED:
            self._add(said, line)

    def end_transaction(self, transaction: int, commits: bool, time_ms: int | None) -> None:
        """The marker of a transaction."""
        for record, line in self._pending.pop(transaction, ()):
            if commits:
                self.take(record._replace(time_ms=time_ms), line)

    def ready(self) -> list[Observation]:
        """The observations since the last call; a commit waits for the next record."""
        found, self._found = self._found, []
        return found

    def finish(self) -> list[Observation]:
        """The last observations: no more records come."""
        self._close_commit()
        return self.ready()

    def _add(self, said: Meaning, line: int) -> None:
        if said.time_ms is None:
            self._source.untimed += 1
            return
        time_us = said.time_ms * 1000
        open_commit = self._commit
        if (
            said.kind == COMMITTED
            and open_commit is not None
            and (open_commit.time_us, open_commit.group) == (time_us, said.group)
            and said.fields["partitions"][0] not in open_commit.fields["partitions"]
        ):
            open_commit.fields["partitions"] += said.fields["partitions"]
            open_commit.fields["positions"] += said.fields["positions"]
            return
        self._close_commit()
        self._source.see_time(time_us)
        one = Observation(time_us, self._source.number, line, said.kind, said.group, said.fields)
        if said.kind == COMMITTED:
            self._commit = one
        else:
            self._found.append(one)

    def _close_commit(self) -> None:
        if self._commit is not None:
            self._found.append(self._commit)
            self._commit = None
