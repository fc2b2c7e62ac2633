"""The types of Kafka's wire format that user data consists of, with Kafka's checks.

Integers are big endian; a string is an int16 length and UTF-8; an array is an int32 length and its
elements; "topic partitions" are an array of (string, array of int32), in subscriptions, assignments and the
sticky assignor's user data alike. Kafka's strings are Java's: ordered by UTF-16 code units, and lenient in
UTF-8.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct, error, pack, unpack_from
from typing import NamedTuple

#: From here on the order of code points differs from the order of UTF-16 code units.
_FIRST_SURROGATE = chr(0xD800)
_ENCODED_SURROGATE_BYTES = 3


def java_key(text: str) -> bytes:
    """A sort key that orders as ``String.compareTo`` does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def java_keys(texts: Sequence[str]) -> Sequence[str] | Sequence[bytes]:
    """Sort keys of these strings in Java's order: ``texts`` itself if Python's order is the same."""
    if "".join(texts).isascii():
        return texts
    needed = any(not text.isascii() and max(text) >= _FIRST_SURROGATE for text in texts)
    return [java_key(text) for text in texts] if needed else texts


def java_sorted(texts: Iterable[str]) -> list[str]:
    """The strings in the order of ``Collections.sort``."""
    listed = list(texts)
    return sorted(listed, key=None if java_keys(listed) is listed else java_key)


def to_utf8(text: str) -> bytes:
    """``String.getBytes(UTF_8)``: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace")


def from_utf8(data: bytes) -> str:
    """``new String(bytes, UTF_8)``: malformed bytes become U+FFFD.

    Java puts one replacement for a whole encoded surrogate, Python would put three.
    """
    return data.decode("utf-8", "groupstorm-java")


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = error.start + _ENCODED_SURROGATE_BYTES
    lead, *rest = error.object[error.start : end]
    is_surrogate = (
        len(rest) == _ENCODED_SURROGATE_BYTES - 1
        and lead == 0xED
        and 0xA0 <= rest[0] <= 0xBF
        and 0x80 <= rest[1] <= 0xBF
    )
    return "\ufffd", end if is_surrogate else error.end


codecs.register_error("groupstorm-java", _replace_as_java)


INT16 = Struct(">h")
INT32 = Struct(">i")
_unpack_int32 = INT32.unpack_from
_MAX_STRING_BYTES = 0x7FFF
#: Strings by their bytes, for `read_strings`. Shared by all threads: an entry depends on its key alone.
_seen: dict[bytes, str] = {}
_MAX_SEEN = 4096
_INT32_BYTES = 4


class UserDataError(ValueError):
    """Bytes that cannot be read."""


class SchemaError(UserDataError):
    """Kafka's SchemaException: the bytes end early, or the version is below 0.

    Other errors leave Kafka's parser as a bare RuntimeException, which its callers do not always
    expect.
    """


class TopicPartition(NamedTuple):
    """One partition; prints as in Kafka, ``topic-0``."""

    topic: str
    partition: int

    @classmethod
    def parse(cls, name: str) -> TopicPartition:
        """Raises ValueError if the name does not end with a number."""
        topic, _, number = name.rpartition("-")
        return cls(topic, int(number))

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def read_int16(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and the position behind it."""
    try:
        return INT16.unpack_from(data, at)[0], at + 2
    except error:
        raise SchemaError(f"the bytes end at {len(data)}, within an int16 at {at}") from None


def read_int32(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and the position behind it."""
    try:
        return _unpack_int32(data, at)[0], at + _INT32_BYTES
    except error:
        raise SchemaError(f"the bytes end at {len(data)}, within an int32 at {at}") from None


def read_array_length(data: bytes, at: int) -> tuple[int, int]:
    """An array's length: not null, and no more elements than bytes left."""
    length, at = read_int32(data, at)
    if not 0 <= length <= len(data) - at:
        raise UserDataError(f"an array of {length} elements at {at - 4}, with {len(data) - at} bytes left")
    return length, at


def read_nullable_string(data: bytes, at: int) -> tuple[str | None, int]:
    """A string; None if its length is negative."""
    length, at = read_int16(data, at)
    if length < 0:
        return None, at
    if length > len(data) - at:
        raise UserDataError(f"a string of {length} bytes at {at - 2}, with {len(data) - at} bytes left")
    return from_utf8(data[at : at + length]), at + length


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A string that is not null."""
    text, behind = read_nullable_string(data, at)
    if text is None:
        raise UserDataError(f"a null string at {at}")
    return text, behind


def read_strings(data: bytes, at: int, count: int) -> tuple[tuple[str, ...], int]:
    """Strings that are not null. Recent ones are looked up by their bytes, not decoded."""
    texts: list[str] = []
    for _ in range(count):
        try:
            end = at + 2 + (data[at] << 8 | data[at + 1])
            text = _seen[data[at:end]]
        except (IndexError, KeyError):
            text, end = read_string(data, at)
            if len(_seen) >= _MAX_SEEN:
                _seen.clear()
            _seen[data[at:end]] = text
        texts.append(text)
        at = end
    return tuple(texts), at


def read_nullable_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes; None if their length is negative."""
    length, at = read_int32(data, at)
    if length < 0:
        return None, at
    if length > len(data) - at:
        raise UserDataError(f"{length} bytes of user data at {at - 4}, with {len(data) - at} bytes left")
    return data[at : at + length], at + length


def read_topic_partitions(data: bytes, at: int) -> tuple[list[tuple[str, tuple[int, ...]]], int]:
    """Topic partitions, topic by topic in their order, and the position behind them."""
    count, at = read_array_length(data, at)
    groups: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(count):
        topic, partitions, at = read_partitions_of_topic(data, at)
        groups.append((topic, partitions))
    return groups, at


def ungrouped(groups: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[TopicPartition, ...]:
    """Topic partitions one by one."""
    return tuple([TopicPartition(topic, number) for topic, numbers in groups for number in numbers])


def read_partitions_of_topic(data: bytes, at: int) -> tuple[str, tuple[int, ...], int]:
    """One element of topic partitions, and the position behind it."""
    topic, at = read_string(data, at)
    length, at = read_array_length(data, at)
    if length * _INT32_BYTES > len(data) - at:
        raise SchemaError(f"the bytes end at {len(data)}, within {length} partitions at {at}")
    return topic, unpack_from(f">{length}i", data, at), at + length * _INT32_BYTES


@lru_cache(maxsize=4096)
def string(text: str) -> bytes:
    """A string's bytes; Kafka's limit is 32767 of them. Cached: topics are written over and over."""
    encoded = to_utf8(text)
    if len(encoded) > _MAX_STRING_BYTES:
        raise UserDataError(f"a string of {len(encoded)} bytes: at most {_MAX_STRING_BYTES} can be written")
    return INT16.pack(len(encoded)) + encoded


def nullable_bytes(data: bytes | None) -> bytes:
    return INT32.pack(-1) if data is None else INT32.pack(len(data)) + data


def topic_partitions(groups: Iterable[tuple[str, Sequence[int]]]) -> bytes:
    """The bytes of (topic, partitions) groups, in the order given."""
    parts = [string(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers) for topic, numbers in groups]
    return INT32.pack(len(parts)) + b"".join(parts)
