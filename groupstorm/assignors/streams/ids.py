"""TaskId and ProcessId: how Kafka Streams names, orders and hashes tasks and clients."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from groupstorm.javahash import string_hash

_TASK_ID = re.compile(r"(?:(.+)__)?(\d{1,10})_(\d{1,10})", re.DOTALL)
_INT32_MAX = (1 << 31) - 1
_MASK_32 = 0xFFFFFFFF


class TaskId(NamedTuple):
    """A partition of a sub-topology, ordered and printed as Kafka's; ``topology`` "" if it has no name."""

    topology: str
    subtopology: int
    partition: int

    def __str__(self) -> str:
        number = f"{self.subtopology}_{self.partition}"
        return f"{self.topology}__{number}" if self.topology else number


def parse_task_id(text: str) -> TaskId:
    """TaskId.parse. ``ValueError`` if the text is none."""
    found = _TASK_ID.fullmatch(text)
    if found is None or max(int(found[2]), int(found[3])) > _INT32_MAX:
        raise ValueError(f"{text!r} is no task id")
    return TaskId(found[1] or "", int(found[2]), int(found[3]))


def task_hash(task: TaskId) -> int:
    """``TaskId.hashCode``: Objects.hash(subtopology, partition, topologyName), unsigned."""
    name = string_hash(task.topology) if task.topology else 0
    return (((31 + task.subtopology) * 31 + task.partition) * 31 + name) & _MASK_32


def parse_process_id(text: str) -> UUID:
    """A UUID, or a number for the UUID of that number as in Kafka's tests. `ValueError` for others."""
    if text.isascii() and text.isdigit():
        number = int(text)
        if number >> 63:
            raise ValueError(f"{text} does not fit into a signed long")
        return UUID(int=number)
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise ValueError(f"{text!r} is no UUID")
    return UUID(text)
