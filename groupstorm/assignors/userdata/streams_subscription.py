"""SubscriptionInfo, the subscription of a Kafka Streams member, in versions 1 to 11.

Up to version 6 it names the active and the standby tasks, from 7 on the offset sum of each task's state (-2
for a running active task, -3 for unknown). Each version adds a field: the endpoint in 2, the latest version
that the member knows in 3, a number that makes every subscription differ in 8 (KAFKA-10455), an error code
in 9, named topologies in 10, client tags in 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata.streams import (
    INT8,
    INT64,
    LATEST_SUPPORTED_VERSION,
    MIN_NAMED_TOPOLOGY_VERSION,
    UNKNOWN_VERSION,
    FieldReader,
    StreamsTask,
    array,
    named_topologies_refused,
)
from groupstorm.assignors.userdata.strings import from_utf8, to_utf8
from groupstorm.assignors.userdata.wire import INT16, INT32, UserDataError, nullable_bytes, string

#: Task.LATEST_OFFSET: the offset sum, and the lag, of a task that is running as active.
LATEST_OFFSET = -2
#: SubscriptionInfo.UNKNOWN_OFFSET_SUM: somebody has the task and cannot say how far.
UNKNOWN_OFFSET_SUM = -3
_MIN_OFFSET_SUM_VERSION = 7
_UUID_BYTES = 16
_NO_PROCESS = UUID(int=0)


class SubscriptionInfo(NamedTuple):
    """``endpoint`` None: no queries. Of a version above the latest only the two versions are known."""

    version: int
    latest_supported_version: int
    process: UUID = _NO_PROCESS
    endpoint: str | None = None
    offset_sums: Mapping[StreamsTask, int] = {}
    unique_field: int = 0
    error_code: int = 0
    client_tags: Mapping[str, str] = {}


def encode_subscription_info(info: SubscriptionInfo) -> bytes:
    """The bytes of a version from 1 to 11, without fields that the version lacks."""
    version = info.version
    if not 1 <= version <= LATEST_SUPPORTED_VERSION:
        raise UserDataError(f"version must be between 1 and {LATEST_SUPPORTED_VERSION}; was: {version}")
    if version < MIN_NAMED_TOPOLOGY_VERSION and any(task.topology is not None for task in info.offset_sums):
        raise named_topologies_refused(version)
    parts = [INT32.pack(version)]
    if version >= 3:
        parts.append(INT32.pack(info.latest_supported_version))
    parts.append(info.process.bytes)
    if version < _MIN_OFFSET_SUM_VERSION:
        parts += _previous_tasks(info.offset_sums)
    if version >= 2:
        parts.append(_text(info.endpoint or ""))
    if version >= MIN_NAMED_TOPOLOGY_VERSION:
        parts.append(_named_offset_sums(info.offset_sums))
    elif version >= _MIN_OFFSET_SUM_VERSION:
        parts.append(_grouped_offset_sums(info.offset_sums))
    if version >= 8:
        parts.append(INT8.pack(info.unique_field))
    if version >= 9:
        parts.append(INT32.pack(info.error_code))
    if version >= 11:
        parts.append(array([_text(key) + _text(value) for key, value in info.client_tags.items()]))
    return b"".join(parts)


def _text(text: str) -> bytes:
    return nullable_bytes(to_utf8(text))


def _previous_tasks(sums: Mapping[StreamsTask, int]) -> list[bytes]:
    """The active tasks, then the standbys."""
    kinds: tuple[list[bytes], list[bytes]] = ([], [])
    for task, offset in sums.items():
        kinds[offset != LATEST_OFFSET].append(pack(">ii", task.subtopology, task.partition))
    return [array(kind) for kind in kinds]


def _named_offset_sums(sums: Mapping[StreamsTask, int]) -> bytes:
    return array(
        [
            pack(">iiq", task.subtopology, task.partition, offset)
            + (INT16.pack(-1) if task.topology is None else string(task.topology))
            for task, offset in sums.items()
        ]
    )


def _grouped_offset_sums(sums: Mapping[StreamsTask, int]) -> bytes:
    groups: dict[int, list[bytes]] = {}
    for task, offset in sums.items():
        groups.setdefault(task.subtopology, []).append(pack(">iq", task.partition, offset))
    return array([INT32.pack(subtopology) + array(tasks) for subtopology, tasks in groups.items()])


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """The subscription. Of an unknown version only the fields that all versions share are read."""
    reader = _SubscriptionReader(data)
    version = reader.number()
    latest = UNKNOWN_VERSION if version < 3 else reader.number()
    if version < 1 or (version >= 3 and latest < version):
        highest = LATEST_SUPPORTED_VERSION if version < 1 else latest
        raise UserDataError(f"version must be between 1 and {highest}; was: {version}")
    if version > LATEST_SUPPORTED_VERSION:
        return SubscriptionInfo(version, latest)
    process = UUID(bytes=reader.bytes(_UUID_BYTES))
    sums: dict[StreamsTask, int] = {}
    if version < _MIN_OFFSET_SUM_VERSION:
        sums.update(dict.fromkeys(reader.tasks(), LATEST_OFFSET))
        sums.update(dict.fromkeys(reader.tasks(), UNKNOWN_OFFSET_SUM))
    endpoint = reader.text() if version >= 2 else ""
    if version >= MIN_NAMED_TOPOLOGY_VERSION:
        sums = reader.named_offset_sums()
    elif version >= _MIN_OFFSET_SUM_VERSION:
        sums = reader.grouped_offset_sums()
    unique = reader.number(INT8) if version >= 8 else 0
    code = reader.number() if version >= 9 else 0
    tags = {reader.text(): reader.text() for _ in reader.array(8)} if version >= 11 else {}
    return SubscriptionInfo(version, latest, process, endpoint or None, sums, unique, code, tags)


class _SubscriptionReader(FieldReader):
    def text(self) -> str:
        return from_utf8(self.bytes(self.number()))

    def tasks(self) -> list[StreamsTask]:
        return [StreamsTask(self.number(), self.number()) for _ in self.array(8)]

    def named_offset_sums(self) -> dict[StreamsTask, int]:
        sums = {}
        for _ in self.array(8 + INT64.size + 2):
            subtopology, partition, offset = self.number(), self.number(), self.number(INT64)
            length = self.number(INT16)
            name = None if length < 0 else from_utf8(self.bytes(length))
            sums[StreamsTask(subtopology, partition, name)] = offset
        return sums

    def grouped_offset_sums(self) -> dict[StreamsTask, int]:
        sums = {}
        for _ in self.array(8):
            subtopology = self.number()
            for _ in self.array(4 + INT64.size):
                task = StreamsTask(subtopology, self.number())
                sums[task] = self.number(INT64)
        return sums
