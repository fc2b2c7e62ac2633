"""The topic, partition and offset of a record, whatever client library it comes from."""

from __future__ import annotations

from typing import Any

from groupstorm.problems import InputError


def place_of(record: Any) -> tuple[str, int | None]:
    """The partition as Kafka prints it (orders-0), and the offset; None for a partition without one.

    aiokafka and kafka-python have attributes, confluent-kafka's messages have methods and its partitions
    attributes. Raises InputError.
    """
    topic, partition, offset = (_value(record, name) for name in ("topic", "partition", "offset"))
    if not isinstance(topic, str) or not isinstance(partition, int):
        raise InputError(f"record: {record!r}: expected the number of a record, or a record of a consumer")
    return f"{topic}-{partition}", offset if isinstance(offset, int) else None


def _value(record: Any, name: str) -> Any:
    found = getattr(record, name, None)
    return found() if callable(found) else found
