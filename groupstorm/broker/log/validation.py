"""The checks of a produced batch that need its records (LogValidator.validateRecord).

A compacted topic takes no record without a key, and every topic bounds its records' timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import structlog

from groupstorm.broker.config import INT64_MAX
from groupstorm.broker.log.batches import HEADER_BYTES, Batch, BatchError, RecordError
from groupstorm.broker.log.compression import NoLibraryError, UnpackError, unpack
from groupstorm.broker.log.records import KeyedRecord, keyed_records
from groupstorm.broker.topic_configs import LogSettings
from groupstorm.coordinator.errors import Error

_SHOWN_ERRORS = 3
_NO_TIMESTAMP = -1


def check_records(batch: Batch, settings: LogSettings, partition: str, now_ms: int) -> None:
    """Raises BatchError with an error for each record that is refused; the whole batch is refused then
    (KIP-467). ``partition``: for messages, as ``orders-0``.

    A batch with a compression whose library is missing passes, on a compacted topic with a warning.
    """
    if not settings.is_compacted and not _may_be_out_of_range(batch, settings, now_ms):
        return
    try:
        records = [*keyed_records(batch.data, unpack(batch.data[HEADER_BYTES:], batch.compression))]
    except NoLibraryError as missing:
        if settings.is_compacted:
            _warn_of_unread(partition, str(missing))
        return
    except (UnpackError, ValueError) as problem:
        raise BatchError(
            Error.INVALID_RECORD, f"the records of a batch cannot be read: {problem}"
        ) from problem
    refused = [*_refused(records, settings, partition, now_ms)]
    if refused:
        raise _refusal(refused)


@cache
def _warn_of_unread(partition: str, problem: str) -> None:
    """One warning for a partition, whatever the number of its batches."""
    sentence = "batches of a compacted topic are neither checked nor compacted"
    structlog.get_logger().warning(sentence, partition=partition, why=problem)


def _may_be_out_of_range(batch: Batch, settings: LogSettings, now_ms: int) -> bool:
    """By the header, which has the newest timestamp and not the oldest: most batches need not be opened."""
    if settings.log_append_time:
        return False
    is_bounded = settings.timestamp_before_max_ms < INT64_MAX
    return is_bounded or batch.max_timestamp_ms > now_ms + settings.timestamp_after_max_ms


def _refused(
    records: list[KeyedRecord], settings: LogSettings, partition: str, now_ms: int
) -> Iterator[tuple[Error, RecordError]]:
    first_ms, last_ms = now_ms - settings.timestamp_before_max_ms, now_ms + settings.timestamp_after_max_ms
    for index, record in enumerate(records):
        stamp_ms = record.timestamp_ms
        if settings.is_compacted and record.key is None:
            sentence = f"Compacted topic cannot accept message without key in topic partition {partition}"
            yield Error.INVALID_RECORD, RecordError(index, sentence)
        elif (
            not settings.log_append_time and stamp_ms != _NO_TIMESTAMP and not first_ms <= stamp_ms <= last_ms
        ):
            sentence = (
                f"Timestamp {stamp_ms} of message with offset {record.offset_delta} is out of range."
                f" The timestamp should be within [{first_ms}, {last_ms}]"
            )
            yield Error.INVALID_TIMESTAMP, RecordError(index, sentence)


def _refusal(refused: list[tuple[Error, RecordError]]) -> BatchError:
    """LogValidator.processRecordErrors: one timestamp among the errors decides on the error of the batch."""
    errors = tuple(one for _, one in refused)
    if any(error is Error.INVALID_TIMESTAMP for error, _ in refused):
        sentence = "One or more records have been rejected due to invalid timestamp"
        return BatchError(Error.INVALID_TIMESTAMP, sentence, errors)
    shown = ", ".join(
        f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:_SHOWN_ERRORS]
    )
    sentence = (
        f"One or more records have been rejected due to {len(errors)} record errors in total,"
        f" and only showing the first three errors at most: [{shown}]"
    )
    return BatchError(Error.INVALID_RECORD, sentence, errors)
