"""Kafka's strings are Java's: ordered by UTF-16 code units, and lenient in UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence

#: From here on the order of code points differs from the order of UTF-16 code units.
_FIRST_SURROGATE = "\ud800"
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
