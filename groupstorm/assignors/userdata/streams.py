"""The common part of Kafka Streams' subscriptions and assignments: versions, errors, fields.

`streams_subscription` is SubscriptionInfo and `streams_assignment` AssignmentInfo. Both begin with an int32
version; integers are big endian. Members of several versions work together: the leader answers in the
lowest version of any subscription, and a leader that meets an unknown version asks all members to use a
lower one (version probing).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from groupstorm.assignors.userdata.wire import INT32, UserDataError

#: StreamsAssignmentProtocolVersions.
LATEST_SUPPORTED_VERSION = 11
EARLIEST_PROBEABLE_VERSION = 3
MIN_NAMED_TOPOLOGY_VERSION = 10
#: Versions 1 and 2 do not state the latest version that the sender knows.
UNKNOWN_VERSION = -1

#: Ours, for KIP-441's draft: Kafka's version 11, the error code 5, and a list of standbys to watch.
WATCH_LIST_VERSION = 12

INT8 = Struct(">b")
INT64 = Struct(">q")
_UINT16 = Struct(">H")
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


def array(elements: Collection[bytes]) -> bytes:
    """An array's bytes."""
    return INT32.pack(len(elements)) + b"".join(elements)


def named_topologies_refused(version: int) -> UserDataError:
    """Kafka's error if a task of a named topology is written in a version below 10."""
    return UserDataError(f"Named topologies are not compatible with protocol version {version}")


def utf(text: str) -> bytes:
    """``DataOutput.writeUTF``: NUL takes two bytes, a character beyond 16 bits two surrogates of three."""
    halves = text.encode("utf-16-be", "surrogatepass")
    encoded = b"".join(
        chr(high << 8 | low).encode("utf-8", "surrogatepass")
        for high, low in zip(halves[::2], halves[1::2], strict=True)
    ).replace(b"\0", b"\xc0\x80")
    if len(encoded) > _MAX_UTF_BYTES:
        raise UserDataError(f"a string of {len(encoded)} bytes: at most {_MAX_UTF_BYTES} can be written")
    return _UINT16.pack(len(encoded)) + encoded


class FieldReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: Struct = INT32) -> int:
        """A number of this size."""
        try:
            number: int = kind.unpack_from(self._data, self._at)[0]
        except error:
            end = len(self._data)
            raise UserDataError(
                f"the bytes end at {end}, within a number of {kind.size} bytes at {self._at}"
            ) from None
        self._at += kind.size
        return number

    def bytes(self, length: int) -> bytes:
        """The next ``length`` bytes."""
        start, left = self._at, len(self._data) - self._at
        if not 0 <= length <= left:
            raise UserDataError(f"{length} bytes at {start}, with {left} bytes left")
        self._at += length
        return self._data[start : self._at]

    def array(self, element_bytes: int) -> range:
        """A number for each element; every element takes at least ``element_bytes``."""
        count, left = self.number(), len(self._data) - self._at
        if not 0 <= count <= left // element_bytes:
            raise UserDataError(f"{count} elements at {self._at - INT32.size}, with {left} bytes left")
        return range(count)

    def utf(self) -> str:
        """``DataInput.readUTF``: an unsigned int16 length and Java's modified UTF-8."""
        data = self.bytes(self.number(_UINT16))
        try:
            units = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
        except UnicodeDecodeError as problem:
            raise UserDataError(f"a malformed string before {self._at}: {problem.reason}") from problem
