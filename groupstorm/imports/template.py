"""Templates of log lines: a text with holes, and the catalogue that finds the template of a message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

#: A generation has 32 bits, a number of milliseconds 64.
_DIGITS_MAX: Final = 18
#: Holes that are numbers. All others are texts, which may be empty or hold anything.
NUMBERS: Final = frozenset(
    {"generation", "count", "static", "epoch", "previous_epoch", "ms", "owned", "old_generation"}
)
_NUMBER: Final = r"-?\d+"
_HOLE = re.compile(r"\{(\w+)\}")
#: A full stop at the end, or nothing.
_DOT: Final = "{dot}"


class Template(NamedTuple):
    """``kind``: what the line says (`timeline` knows what follows). ``where``: release, class and line in
    Kafka's sources, or the client's. ``lines``: more lines belong to the message, as `Name: value`.
    ``program``: the only one that writes it, if no prefix of the message tells."""

    kind: str
    text: str
    where: str
    lines: bool = False
    program: str = ""


class Found(NamedTuple):
    kind: str
    fields: dict[str, Any]
    lines: bool
    program: str = ""


class _Parts(NamedTuple):
    """``start``: the text in front of the first hole. ``inner``: each hole but the last, and the text behind
    it; ``last``: the last one, "" if there is none, and ``end`` the text behind that. ``literal``: the
    longest of the texts, without which a message need not be looked at."""

    template: Template
    start: str
    inner: tuple[tuple[str, str], ...]
    last: str
    end: str
    literal: str
    numbers: tuple[str, ...]
    has_dot: bool


def _parts(template: Template) -> _Parts:
    start, *rest = _HOLE.split(template.text.removesuffix(_DOT))
    holes, texts = rest[::2] or [""], rest[1::2] or [""]
    return _Parts(
        template,
        start,
        tuple(zip(holes[:-1], texts[:-1], strict=True)),
        holes[-1],
        texts[-1],
        max(start, *texts, key=len),
        tuple(hole for hole in dict.fromkeys(holes) if hole in NUMBERS),
        template.text.endswith(_DOT),
    )


class Catalogue:
    """Finds the template of a message by its first word, then one template after the other."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self._by_word: dict[str, list[_Parts]] = {}
        self._any: list[_Parts] = []
        for template in templates:
            word = first_word(template.text)
            rows = self._any if "{" in word else self._by_word.setdefault(word, [])
            rows.append(_parts(template))

    def find(self, message: str) -> Found | None:
        """The template of ``message`` and what stood in its holes; None if there is none."""
        for rows in (self._by_word.get(first_word(message), ()), self._any):
            for row in rows:
                if row.literal in message:
                    fields = _fields(row, message)
                    if fields is not None:
                        kind, _, _, lines, program = row.template
                        return Found(kind, fields, lines, program)
        return None


def first_word(text: str) -> str:
    return text.partition(" ")[0]


def _fields(row: _Parts, message: str) -> dict[str, Any] | None:
    """The texts and numbers in the holes; None if the message is none of the template's."""
    fields = _between(row, message)
    if fields is None:
        return None
    for name in row.numbers:
        if not fields[name].isdecimal():  # it is negative, or a text in front of it goes on
            found = _pattern(row.template.text).fullmatch(message)
            if found is None:
                return None
            fields = found.groupdict()
            break
    for name in row.numbers:
        if len(fields[name]) > _DIGITS_MAX:
            return None
        fields[name] = int(fields[name])
    return fields


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A template with numbers as a regular expression, which is slow, and tries every end of a text."""
    start, *rest = map(re.escape, _HOLE.split(text.removesuffix(_DOT)))
    holes = [f"(?P<{name}>{_NUMBER if name in NUMBERS else '.*?'})" for name in rest[::2]]
    return re.compile(start + "".join(map("".join, zip(holes, rest[1::2], strict=True))), re.DOTALL)


def _between(row: _Parts, message: str) -> dict[str, Any] | None:
    """The texts in the holes, each the shortest: one text after the other is looked for."""
    if not message.startswith(row.start):
        return None
    if row.has_dot:
        message = message.removesuffix(".")
    fields: dict[str, Any] = {}
    begin = len(row.start)
    for name, behind in row.inner:
        end = message.find(behind, begin)
        if end < 0 or fields.setdefault(name, message[begin:end]) != message[begin:end]:
            return None
        begin = end + len(behind)
    end = len(message) - len(row.end)
    if end < begin or not message.endswith(row.end):
        return None
    if row.last:
        if fields.setdefault(row.last, message[begin:end]) != message[begin:end]:
            return None
    elif begin < end:
        return None
    return fields
