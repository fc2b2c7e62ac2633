"""The records of a log as a consumer sees them, and logs to compact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.log.batches import parse_produced
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.broker.topic_configs import LogSettings
from tests.broker import wire
from tests.broker.kills.requests import records_of

NOW_MS = 1_700_000_000_000


class Read(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = NOW_MS


def read(log: PartitionLog, committed_only: bool = False) -> Iterator[Read]:
    """The records that a consumer gets which begins at the start of the log."""
    end = log.last_stable_offset if committed_only else log.end_offset
    batches = log.read(log.start_offset, log.size_bytes + 1, True, end)
    aborted = log.transactions.aborted_between(log.start_offset, end) if committed_only else []
    for offset, one in records_of(batches, aborted):
        if offset >= log.start_offset:
            yield Read(offset, one.key, one.value, one.timestamp_ms)


def settings(**changed: object) -> LogSettings:
    """Return the settings of a topic that is compacted whenever it has a dirty segment. Each batch is a
    segment of its own: all but the last one can be compacted."""
    made = LogSettings({"retention.ms": "-1"})
    made.is_compacted, made.is_deleted = True, False
    made.min_cleanable_dirty_ratio = 0.0
    made.segment_bytes = 1
    for name, value in changed.items():
        setattr(made, name, value)
    return made


def compacted_log(**changed: object) -> PartitionLog:
    return PartitionLog(settings(**changed))


def append(
    log: PartitionLog, *records: tuple[bytes | None, bytes | None], now_ms: int = NOW_MS, **fields: Any
) -> int:
    """One batch of keys and values; its offset."""
    keys, values = [key for key, _ in records], [value for _, value in records]
    data = wire.batch(values, keys=keys, timestamp_ms=now_ms, **fields)
    return log.append(parse_produced(data, 9, 1_000_000)).base_offset


def clean(log: PartitionLog, now_ms: int = NOW_MS) -> bool:
    """One pass as the broker makes it, if the log is due; whether it was."""
    part = log.cleanable(now_ms)
    if not part.is_due(log.settings):
        return False
    removed, rewritten, aborted = log.clean(part, now_ms)
    for data in rewritten.values():
        log.rewrite(data)
    log.remove(removed)
    log.end_cleaning(part.end_offset, aborted)
    return True


def offsets(log: PartitionLog, committed_only: bool = False) -> Sequence[int]:
    return [one.offset for one in read(log, committed_only)]
