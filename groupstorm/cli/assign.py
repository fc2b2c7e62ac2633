"""`groupstorm assign`: run assignors on cases, JSON lines in, JSON lines out."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from groupstorm.assignors.cases import answers
from groupstorm.assignors.server.cases import answers as server_answers
from groupstorm.assignors.streams.cases import answers as streams_answers
from groupstorm.problems import InputError
from groupstorm.visible import visible_in_json


class Mode(StrEnum):
    """Whose assignors: the consumers' own, the broker's (KIP-848), or those of Kafka Streams."""

    CONSUMER = "consumer"
    SERVER = "server"
    STREAMS = "streams"


def assign(
    file: Path | None = None,
    mode: Mode = Mode.CONSUMER,
    plug_in: list[str] | None = None,
) -> None:
    """Answer cases: what would this assignor give to these members?"""
    if mode is not Mode.CONSUMER and plug_in:
        raise InputError(f"--plug-in {plug_in[0]}: expected --mode consumer, members bring no assignors here")
    if file is None:
        _answer(sys.stdin.buffer, mode, plug_in or ())
        return
    try:
        opened = file.open("rb")
    except OSError as problem:
        raise InputError(f"{file}: expected a file of cases: {problem.strerror}") from problem
    with opened:
        _answer(opened, mode, plug_in or ())


def _answer(lines: Iterable[bytes], mode: Mode, plug_ins: Collection[str]) -> None:
    """Print each answer at once, so that the answers before a bad line are printed."""
    out = sys.stdout.buffer
    for answer in _answers(lines, mode, plug_ins):
        out.write(visible_in_json(answer).encode() + b"\n")
        out.flush()


def _answers(lines: Iterable[bytes], mode: Mode, plug_ins: Collection[str]) -> Iterator[str]:
    if mode is Mode.SERVER:
        return server_answers(lines)
    if mode is Mode.STREAMS:
        return streams_answers(lines)
    return answers(lines, plug_ins)
