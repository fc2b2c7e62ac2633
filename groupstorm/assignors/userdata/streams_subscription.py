"""SubscriptionInfo, the subscription of a Kafka Streams member, in versions 1 to 11.

Up to version 6 it names the active and the standby tasks, from 7 on the offset sum of each task's state (-2
for a running active task, -3 for unknown). Each version adds a field: the endpoint in 2, the latest version
that the member knows in 3, a number that makes every subscription differ in 8 (KAFKA-10455), an error code
in 9, named topologies in 10, client tags in 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct, error, pack
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.userdata.streams import (
    INT64,
    LATEST_SUPPORTED_VERSION,
    MIN_NAMED_TOPOLOGY_VERSION,
    UNKNOWN_VERSION,
    FieldReader,
    StreamsTask,
)
from groupstorm.assignors.userdata.strings import from_utf8, to_utf8
from groupstorm.assignors.userdata.wire import (
    UserDataError,
    read_int32,
    read_nullable_bytes,
    read_nullable_string,
    string,
)

LATEST_OFFSET = -2
UNKNOWN_OFFSET_SUM = -3
_MIN_OFFSET_SUM_VERSION = 7
_INT8 = Struct(">b")
_UUID_BYTES = 16
_NO_PROCESS = UUID(int=0)


class SubscriptionInfo(NamedTuple):
    """``offset_sums``: per task; ``endpoint`` None if the member serves no queries.

    Of a version above the latest only ``version`` and ``latest_supported_version`` are known.
    """

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
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", info.latest_supported_version))
    parts.append(info.process.bytes)
    if version < _MIN_OFFSET_SUM_VERSION:
        _refuse_names(info.offset_sums, version)
        running = [task for task, offset in info.offset_sums.items() if offset == LATEST_OFFSET]
        following = [task for task, offset in info.offset_sums.items() if offset != LATEST_OFFSET]
        parts += [_tasks(running), _tasks(following)]
    if version >= 2:
        parts.append(_bytes(to_utf8(info.endpoint or "")))
    if version >= _MIN_OFFSET_SUM_VERSION:
        parts.append(_offset_sums(info.offset_sums, version))
    if version >= 8:
        parts.append(_INT8.pack(info.unique_field))
    if version >= 9:
        parts.append(pack(">i", info.error_code))
    if version >= 11:
        parts.append(pack(">i", len(info.client_tags)))
        parts += [_bytes(to_utf8(key)) + _bytes(to_utf8(value)) for key, value in info.client_tags.items()]
    return b"".join(parts)


def _bytes(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def _tasks(tasks: list[StreamsTask]) -> bytes:
    return pack(">i", len(tasks)) + b"".join(pack(">ii", task.subtopology, task.partition) for task in tasks)


def _refuse_names(tasks: Iterable[StreamsTask], version: int) -> None:
    if any(task.topology is not None for task in tasks):
        raise UserDataError(f"Named topologies are not compatible with protocol version {version}")


def _offset_sums(sums: Mapping[StreamsTask, int], version: int) -> bytes:
    if version >= MIN_NAMED_TOPOLOGY_VERSION:
        entries = [
            pack(">iiq", task.subtopology, task.partition, offset)
            + (pack(">h", -1) if task.topology is None else string(task.topology))
            for task, offset in sums.items()
        ]
        return pack(">i", len(entries)) + b"".join(entries)
    _refuse_names(sums, version)
    groups: dict[int, list[bytes]] = {}
    for task, offset in sums.items():
        groups.setdefault(task.subtopology, []).append(pack(">iq", task.partition, offset))
    return pack(">i", len(groups)) + b"".join(
        pack(">ii", subtopology, len(partitions)) + b"".join(partitions)
        for subtopology, partitions in groups.items()
    )


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """The subscription. Of an unknown version only the fields that all versions share are read."""
    version, at = read_int32(data, 0)
    if version > LATEST_SUPPORTED_VERSION:
        latest, at = read_int32(data, at)
        if latest < version:
            raise UserDataError(f"version must be between 1 and {latest}; was: {version}")
        return SubscriptionInfo(version, latest)
    if version < 1:
        raise UserDataError(f"version must be between 1 and {LATEST_SUPPORTED_VERSION}; was: {version}")
    latest = UNKNOWN_VERSION
    if version >= 3:
        latest, at = read_int32(data, at)
        if latest < version:
            raise UserDataError(f"version must be between 1 and {latest}; was: {version}")
    return _SubscriptionReader(data, at, version).read(latest)


class _SubscriptionReader(FieldReader):
    def read(self, latest: int) -> SubscriptionInfo:
        version = self._version
        process = self._uuid()
        sums: dict[StreamsTask, int] = {}
        if version < _MIN_OFFSET_SUM_VERSION:
            sums.update(dict.fromkeys(self._tasks(), LATEST_OFFSET))
            sums.update(dict.fromkeys(self._tasks(), UNKNOWN_OFFSET_SUM))
        endpoint = self._text() if version >= 2 else ""
        if version >= MIN_NAMED_TOPOLOGY_VERSION:
            sums = self._named_offset_sums()
        elif version >= _MIN_OFFSET_SUM_VERSION:
            sums = self._grouped_offset_sums()
        unique = self._int8() if version >= 8 else 0
        code = self._int32() if version >= 9 else 0
        tags = self._tags() if version >= 11 else {}
        return SubscriptionInfo(version, latest, process, endpoint or None, sums, unique, code, tags)

    def _uuid(self) -> UUID:
        raw = self._data[self._at : self._at + _UUID_BYTES]
        if len(raw) < _UUID_BYTES:
            raise UserDataError(f"the bytes end at {len(self._data)}, within a process id at {self._at}")
        self._at += _UUID_BYTES
        return UUID(bytes=raw)

    def _int8(self) -> int:
        try:
            number: int = _INT8.unpack_from(self._data, self._at)[0]
        except error:
            raise UserDataError(f"the bytes end at {len(self._data)}, before an int8") from None
        self._at += 1
        return number

    def _text(self) -> str:
        found, self._at = read_nullable_bytes(self._data, self._at)
        if found is None:
            raise UserDataError(f"null bytes at {self._at}")
        return from_utf8(found)

    def _tasks(self) -> list[StreamsTask]:
        return [StreamsTask(self._int32(), self._int32()) for _ in range(self._count(8))]

    def _named_offset_sums(self) -> dict[StreamsTask, int]:
        sums = {}
        for _ in range(self._count(8 + INT64.size + 2)):
            subtopology, partition, offset = self._int32(), self._int32(), self._int64()
            name, self._at = read_nullable_string(self._data, self._at)
            sums[StreamsTask(subtopology, partition, name)] = offset
        return sums

    def _grouped_offset_sums(self) -> dict[StreamsTask, int]:
        sums = {}
        for _ in range(self._count(8)):
            subtopology = self._int32()
            for _ in range(self._count(4 + INT64.size)):
                task = StreamsTask(subtopology, self._int32())
                sums[task] = self._int64()
        return sums

    def _tags(self) -> dict[str, str]:
        tags: dict[str, str] = {}
        for _ in range(self._count(8)):
            key = self._text()
            tags[key] = self._text()
        return tags
