"""One record of `__consumer_offsets`, from whatever source."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple


class KeyType(IntEnum):
    """The types of keys that groupstorm reads (CoordinatorRecordType, Kafka 4.3.1).

    Kafka has more, of share groups (10 to 15) and streams groups (17 to 23).
    """

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


class WrittenRecord(NamedTuple):
    """``key`` and ``value``: the fields of Kafka's schemas. ``value`` None is a tombstone.

    ``time_ms``: the record's timestamp, which the coordinator sets; None if the source does not print it.
    """

    key_type: int
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    time_ms: int | None = None
