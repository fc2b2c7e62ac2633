"""Templates of log lines: a text with holes, and the catalogue that finds the template of a message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

#: A generation has 32 bits, a number of milliseconds 64.
_DIGITS_MAX = 18
_NUMBER = r"-?\d+"
#: Holes that are numbers. All others are texts, which may be empty or hold anything.
NUMBERS = frozenset(
    {"generation", "count", "static", "epoch", "previous_epoch", "ms", "owned", "old_generation"}
)
_HOLE = re.compile(r"\{(\w+)\}")


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


class _Compiled(NamedTuple):
    """``literal``: the longest text between two holes. A message without it needs no match, which takes
    longer."""

    template: Template
    pattern: re.Pattern[str]
    numbers: tuple[str, ...]
    literal: str


def compiled(template: Template) -> re.Pattern[str]:
    """The template as a pattern. ``{rest}`` takes everything, and ``{dot}`` is a full stop or nothing."""
    parts, at, names = [], 0, set()
    for hole in _HOLE.finditer(template.text):
        parts.append(re.escape(template.text[at : hole.start()]))
        name, at = hole[1], hole.end()
        if name == "dot":
            parts.append(r"\.?")
        elif name in names:
            parts.append(f"(?P={name})")
        else:
            names.add(name)
            inside = _NUMBER if name in NUMBERS else ".*" if name == "rest" else ".*?"
            parts.append(f"(?P<{name}>{inside})")
    parts.append(re.escape(template.text[at:]))
    return re.compile("".join(parts), re.DOTALL)


class Catalogue:
    """Finds the template of a message by its first word, then one pattern after the other."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self._by_word: dict[str, list[_Compiled]] = {}
        self._any: list[_Compiled] = []
        for template in templates:
            pattern = compiled(template)
            holes = dict.fromkeys(pattern.groupindex)
            literal = max(_HOLE.sub("{}", template.text).split("{}"), key=len)
            row = _Compiled(template, pattern, tuple(hole for hole in holes if hole in NUMBERS), literal)
            word = first_word(template.text)
            if "{" in word:
                self._any.append(row)
            else:
                self._by_word.setdefault(word, []).append(row)

    def find(self, message: str) -> Found | None:
        """The template of ``message`` and what stood in its holes; None if there is none."""
        for rows in (self._by_word.get(first_word(message), ()), self._any):
            for row in rows:
                if row.literal in message:
                    found = row.pattern.fullmatch(message)
                    if found is not None:
                        return _found(row, found)
        return None


def first_word(text: str) -> str:
    return text.partition(" ")[0]


def _found(row: _Compiled, match: re.Match[str]) -> Found | None:
    """None if a number is larger than any that Kafka has."""
    fields: dict[str, Any] = match.groupdict()
    for name in row.numbers:
        if len(fields[name]) > _DIGITS_MAX:
            return None
        fields[name] = int(fields[name])
    return Found(row.template.kind, fields, row.template.lines, row.template.program)
