"""Retention and compaction, which a broker does with its logs by itself, each with its interval.

Kafka: LogManager.cleanupLogs, and one thread of LogCleaner.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.broker.changes import BatchesRemoved, BatchRewritten, LogCleaned, RecordsDeleted
from groupstorm.broker.log.cleaning import Cleanable
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.log.topics import Topic
from groupstorm.broker.state import BrokerState


class _Filthy(NamedTuple):
    """A log that is due for compaction."""

    topic: Topic
    partition: int
    part: Cleanable


class LogMaintenance:
    """The intervals begin with the first request, or the first record of a test."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._retention_check_ms: int | None = None
        self._cleaning_ms = 0
        #: Logs that could not be read (LogCleanerManager.markPartitionUncleanable).
        self._uncleanable: set[PartitionLog] = set()

    def begin(self, now_ms: int) -> None:
        """Note a request, or a record of a test."""
        if self._retention_check_ms is None:
            self._retention_check_ms = now_ms + self._state.config.log_retention_check_interval_ms
            self._cleaning_ms = now_ms + self._state.config.log_cleaner_backoff_ms

    def next_deadline(self) -> int | None:
        """When to call `fire`, in ms; there is nothing to compact without a topic whose cleanup.policy says
        so."""
        if self._retention_check_ms is None or not self._state.topics.compacted:
            return self._retention_check_ms
        return min(self._retention_check_ms, self._cleaning_ms)

    def fire(self, now_ms: int) -> None:
        """Expire records, and compact one log that is due. A log that cannot be read is never compacted."""
        if self._retention_check_ms is None:
            return
        if now_ms >= self._retention_check_ms:
            self._retention_check_ms = now_ms + self._state.config.log_retention_check_interval_ms
            self._expire_records(now_ms)
        if now_ms >= self._cleaning_ms and self._state.topics.compacted:
            filthiest = self._filthiest(now_ms)
            if filthiest is None:
                self._cleaning_ms = now_ms + self._state.config.log_cleaner_backoff_ms
                return
            # requests that have come meanwhile are served before the next log
            try:
                self._clean(filthiest, now_ms)
            except OSError:
                self._uncleanable.add(filthiest.topic.partitions[filthiest.partition])

    def _expire_records(self, now_ms: int) -> None:
        """Drop the records that are older than their topic's retention.ms."""
        for topic in self._state.topics:
            for partition, log in enumerate(topic.partitions):
                if log.expire(now_ms):
                    self._state.carry_out(RecordsDeleted(topic.name, partition, log.start_offset))

    def _clean(self, filthy: _Filthy, now_ms: int) -> None:
        """Compact this part of a log. Raises OSError."""
        topic, partition, part = filthy
        removed, rewritten, aborted = topic.partitions[partition].clean(part, now_ms)
        where = (topic.name, partition)
        for data in rewritten.values():
            self._state.carry_out(BatchRewritten(*where, data))
        if removed:
            self._state.carry_out(BatchesRemoved(*where, tuple(removed)))
        self._state.carry_out(LogCleaned(*where, part.end_offset, tuple(aborted)))

    def _filthiest(self, now_ms: int) -> _Filthy | None:
        """The log that is due, the one with most dirty bytes for its size
        (LogCleanerManager.grabFilthiestCompactedLog)."""
        due = []
        for topic in self._state.topics.compacted.values():
            for index, log in enumerate(topic.partitions):
                part = log.cleanable(now_ms)
                if part.is_due(topic.settings) and log not in self._uncleanable:
                    due.append(_Filthy(topic, index, part))
        return max(due, key=lambda one: one.part.dirty_ratio, default=None)
