"""The subject of a certificate as Java names it: RFC 2253, the last attribute in front.

Kafka's principal of a client with a certificate is X500Principal.getName() (DefaultKafkaPrincipalBuilder,
without ssl.principal.mapping.rules). Attributes that RFC 2253 has no name for are written by their number,
their value as the hexadecimal digits of its DER.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

_SEQUENCE, _OBJECT_IDENTIFIER = 0x30, 0x06
#: The version of a certificate; the first version has none.
_EXPLICIT_VERSION = 0xA0
#: Fields of a certificate in front of its subject: serial number, algorithm, issuer, validity.
_BEFORE_SUBJECT = 4

#: RFC 2253, section 2.3.
_NAMES: Mapping[str, str] = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
#: Tag of a string type -> its encoding.
_ENCODINGS: Mapping[int, str] = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
_ESCAPED = frozenset(',+=<>;"\\')


class _Value(NamedTuple):
    """One value of DER; ``whole``: with its tag and length."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER), which OpenSSL has read before."""
    (body, *_) = _values(next(_values(certificate)).content)
    fields = list(_values(body.content))
    if fields[0].tag == _EXPLICIT_VERSION:
        del fields[0]
    names = [_name_of(one) for one in _values(fields[_BEFORE_SUBJECT].content)]
    return ",".join(reversed(names))


def _name_of(relative: _Value) -> str:
    """One relative distinguished name, which may have several attributes."""
    return "+".join(_attribute(*_values(one.content)) for one in _values(relative.content))


def _attribute(kind: _Value, value: _Value) -> str:
    number = _identifier(kind.content)
    encoding = _ENCODINGS.get(value.tag)
    if number not in _NAMES or encoding is None:
        return f"{_NAMES.get(number, number)}=#{value.whole.hex()}"
    return f"{_NAMES[number]}={_escaped(value.content.decode(encoding, 'replace'))}"


def _escaped(text: str) -> str:
    """RFC 2253, section 2.4: special characters, # in front, and spaces at both ends."""
    escaped = ["\\" + sign if sign in _ESCAPED else sign for sign in text]
    spaces = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    for index, sign in enumerate(text):
        if sign == " " and not spaces[0] <= index < spaces[1]:
            escaped[index] = "\\ "
    if text.startswith("#"):
        escaped[0] = "\\#"
    return "".join(escaped)


def _identifier(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _values(data: bytes) -> Iterator[_Value]:
    at = 0
    while at < len(data):
        length, start = data[at + 1], at + 2
        if length >= 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[at + 2 : start], "big")
        yield _Value(data[at], data[start : start + length], data[at : start + length])
        at = start + length
