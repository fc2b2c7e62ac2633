"""Templates of the lines that programs log about groups, from their sources, and their catalogues: one per
kind of prefix, and one for messages without; and Kafka's errors in the words of the programs that log them.

A template is a text with holes. A table has one a line: its kind (with a + if more lines belong to the
message), its source, the only program that writes it (if no prefix of the message tells), and its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from groupstorm.imports.prefixes import Writer
from groupstorm.tables import rows

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
            known = self._any if "{" in word else self._by_word.setdefault(word, [])
            known.append(_parts(template))

    def find(self, message: str) -> Found | None:
        """The template of ``message`` and what stood in its holes; None if there is none."""
        for known in (self._by_word.get(first_word(message), ()), self._any):
            for row in known:
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


#: The kind of a broker's own configuration, which it logs when it starts.
BROKER_CONFIG: Final = "broker-config"
#: The kind of the configuration of a worker of Kafka Connect.
WORKER_CONFIG: Final = "worker-config"
#: The kinds of exceptions that a Java application logs: they name no client.
EXCEPTIONS: Final = frozenset(
    f"{one}-exception" for one in ("authorization", "commit", "fenced", "join", "rebalance")
)
#: The kinds of lines about a request that had no answer in time.
LATE: Final = ("heartbeat-late", "join-late", "sync-late", "commit-late", "leave-late")
#: The kind of a broker's line about a partition of __consumer_offsets that takes no records.
APPEND_REFUSED: Final = "append-refused"


def table(name: str) -> tuple[Template, ...]:
    return tuple(
        Template(kind.removesuffix("+"), text, where, kind.endswith("+"), program)
        for kind, where, program, text in rows(__package__, name)
    )


_CLASSIC: Final = table("broker_classic")
_OTHER_CLIENTS: Final = table("other_clients")
#: A broker logs these without its prefix: the object `GroupMetadata` writes them.
_WITHOUT_PREFIX: Final = ("Loaded member MemberMetadata", "Static member MemberMetadata", "given member.id")
_BARE: Final = (
    *(template for template in _CLASSIC if template.text.startswith(_WITHOUT_PREFIX)),
    *_OTHER_CLIENTS,
    *table("bare"),
)
TABLES: Final[Mapping[Writer, tuple[Template, ...]]] = {
    Writer.BROKER: (*_CLASSIC, *table("broker_java"), *table("broker_groups")),
    Writer.JAVA: table("java_client"),
    Writer.STREAMS: table("streams"),
    Writer.RDKAFKA: table("librdkafka"),
    Writer.BARE: _BARE,
}

CATALOGUES: Final[Mapping[Writer, Catalogue]] = {
    writer: Catalogue(templates) for writer, templates in TABLES.items()
}
BARE: Final = CATALOGUES[Writer.BARE]


def _beginnings(templates: tuple[Template, ...]) -> re.Pattern[str]:
    literals = {template.text.partition("{")[0] for template in templates}
    return re.compile("|".join(re.escape(one) for one in sorted(literals, key=lambda one: (-len(one), one))))


BARE_BEGINNING: Final = _beginnings(_BARE)
#: Kinds of lines that only coordinators write.
BROKER_KINDS: Final = frozenset(template.kind for template in TABLES[Writer.BROKER]) - {"noted"}
#: The messages of franz-go -> the names of their fields.
FRANZ_GO_FIELDS: Final[Mapping[str, list[str]]] = {
    template.text.partition(";")[0]: re.findall(r"(\w+): ?\{", template.text)
    for template in _OTHER_CLIENTS
    if template.program == Writer.FRANZ_GO
}


UNKNOWN_ERROR: Final = "unknown"
#: Error -> a pattern of the letters of what programs say: names and messages of Kafka, librdkafka, sarama,
#: segmentio/kafka-go, kafka-python, kafkajs. The first that fits counts.
_PATTERNS: Final = tuple((name, re.compile(words)) for name, words in rows(__package__, "errors"))
_OTHER: Final = re.compile("[^a-z]+")


def error_of(text: str) -> str:
    """The error that ``text`` is about, by Kafka's name; "unknown" if its words are not known."""
    letters = _OTHER.sub("", text.lower())
    return next((name for name, words in _PATTERNS if words.search(letters)), UNKNOWN_ERROR)
