"""The common part of Kafka Streams' subscriptions and assignments: versions, errors, fields.

`streams_subscription` is SubscriptionInfo and `streams_assignment` AssignmentInfo. Both begin with an int32
version; integers are big endian. Members of several versions work together: the leader answers in the
lowest version of any subscription, and a leader that meets an unknown version asks all members to use a
lower one (version probing).

Every length is checked before it is used; unreadable bytes raise `UserDataError`.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct, error, pack
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import UserDataError, read_int32

#: StreamsAssignmentProtocolVersions.
LATEST_SUPPORTED_VERSION = 11
EARLIEST_PROBEABLE_VERSION = 3
MIN_NAMED_TOPOLOGY_VERSION = 10
#: Versions 1 and 2 do not state the latest version that the sender knows.
UNKNOWN_VERSION = -1

#: Ours, for KIP-441's draft: Kafka's version 11, the error code 5, and a list of standbys to watch.
WATCH_LIST_VERSION = 12

INT64 = Struct(">q")
_UINT16 = Struct(">H")
_TASK_ID_BYTES = 8
_MAX_UTF_BYTES = 0xFFFF


class AssignorError(IntEnum):
    """Kafka's error codes of assignments, and that of KIP-441's draft (from our version 12)."""

    NONE = 0
    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4
    IMBALANCED_ASSIGNMENT = 5


class StreamsTask(NamedTuple):
    """A task in the bytes: sub-topology, partition, and its named topology or None."""

    subtopology: int
    partition: int
    topology: str | None = None


def read_int64(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and the position behind it."""
    try:
        return INT64.unpack_from(data, at)[0], at + 8
    except error:
        raise UserDataError(f"the bytes end at {len(data)}, within an int64 at {at}") from None


def read_count(data: bytes, at: int, element_bytes: int) -> tuple[int, int]:
    """The number of elements, each of at least that size, that follow; no more than there is room for."""
    count, at = read_int32(data, at)
    if not 0 <= count <= (len(data) - at) // element_bytes:
        raise UserDataError(f"{count} elements at {at - 4}, with {len(data) - at} bytes left")
    return count, at


def read_task(data: bytes, at: int, version: int) -> tuple[StreamsTask, int]:
    """A task id (ConsumerProtocolUtils): from version 10 on with the UTF-16 units of its named topology."""
    subtopology, at = read_int32(data, at)
    partition, at = read_int32(data, at)
    if version < MIN_NAMED_TOPOLOGY_VERSION:
        return StreamsTask(subtopology, partition), at
    units, at = read_count(data, at, 2)
    name = data[at : at + 2 * units].decode("utf-16-be", "surrogatepass")
    return StreamsTask(subtopology, partition, name or None), at + 2 * units


def task_bytes(task: StreamsTask, version: int) -> bytes:
    """A task id's bytes; named topologies need version 10."""
    if version < MIN_NAMED_TOPOLOGY_VERSION:
        if task.topology is not None:
            raise UserDataError(f"Named topologies are not compatible with protocol version {version}")
        return pack(">ii", task.subtopology, task.partition)
    name = (task.topology or "").encode("utf-16-be", "surrogatepass")
    return pack(">iii", task.subtopology, task.partition, len(name) // 2) + name


def task_id_bytes_min(version: int) -> int:
    """The least that a task id takes."""
    return _TASK_ID_BYTES + (4 if version >= MIN_NAMED_TOPOLOGY_VERSION else 0)


def read_utf(data: bytes, at: int) -> tuple[str, int]:
    """``DataInput.readUTF``: an unsigned int16 length and Java's modified UTF-8."""
    try:
        length: int = _UINT16.unpack_from(data, at)[0]
    except error:
        raise UserDataError(f"the bytes end at {len(data)}, within a string's length at {at}") from None
    at += 2
    if length > len(data) - at:
        raise UserDataError(f"a string of {length} bytes at {at - 2}, with {len(data) - at} bytes left")
    return _from_modified_utf8(data[at : at + length], at), at + length


def utf(text: str) -> bytes:
    """``DataOutput.writeUTF``: NUL takes two bytes, a character beyond 16 bits two surrogates of three."""
    units = text.encode("utf-16-be", "surrogatepass")
    encoded = b"".join(
        _unit_bytes(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True)
    )
    if len(encoded) > _MAX_UTF_BYTES:
        raise UserDataError(f"a string of {len(encoded)} bytes: at most {_MAX_UTF_BYTES} can be written")
    return _UINT16.pack(len(encoded)) + encoded


def _unit_bytes(unit: int) -> bytes:
    if unit == 0:
        return b"\xc0\x80"
    return chr(unit).encode("utf-8", "surrogatepass")


def _from_modified_utf8(data: bytes, at: int) -> str:
    try:
        units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError as problem:
        raise UserDataError(f"a malformed string at {at}: {problem.reason}") from problem


class FieldReader:
    """Reads field by field from a position on."""

    def __init__(self, data: bytes, at: int, version: int) -> None:
        self._data = data
        self._at = at
        self._version = version

    def _int32(self) -> int:
        number, self._at = read_int32(self._data, self._at)
        return number

    def _int64(self) -> int:
        number, self._at = read_int64(self._data, self._at)
        return number

    def _count(self, element_bytes: int) -> int:
        """How many elements of at least that size follow."""
        count, self._at = read_count(self._data, self._at, element_bytes)
        return count
