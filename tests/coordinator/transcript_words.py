"""The command lines of transcripts, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class CommandLine(NamedTuple):
    """A command line: ``names`` are its bare words, ``options`` the others."""

    command: str
    names: list[str]
    options: dict[str, str]

    @classmethod
    def of(cls, line: str) -> CommandLine:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        return cls(command, [word for word in words if "=" not in word], options)

    def offsets(self) -> dict[str, dict[str, int]]:
        """The options that are partitions, as in ``t-0=5``."""
        offsets: dict[str, dict[str, int]] = {}
        for name, value in self.options.items():
            if (match := re.fullmatch(r"(\w+)-(\d+)", name)) is not None:
                offsets.setdefault(match[1], {})[match[2]] = int(value)
        return offsets


def milliseconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h)", text)
    assert match is not None, f"{text} is no duration"
    return int(match[1]) * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[match[2]]


def value_of(text: str) -> int | str:
    """A number, a text, or "$-1" for "-1": one below the client's own."""
    if text[0] in "+-":
        return f"${text}"
    return int(text) if text.isdigit() else text


def by_topic(partitions: Iterable[str]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, _, number in (partition.rpartition("-") for partition in partitions if partition):
        topics.setdefault(topic, []).append(int(number))
    return topics
