"""The search of blocks for lines of interest finds the lines, and the numbers, of a reading line by line."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from io import BytesIO

import pytest

from groupstorm.imports.lines import INDENTED, LINE_MAX, LogFile

ANCHORS = (b"roup", b"[thrd:")
LINES = (
    b"other",
    b"a group",
    b"\tfollows",
    b"2024-11-18T14:36:14.4Z stdout F  follows",
    b" follows [thrd:",
    b"",
    b"crlf group\r",
    b"\xff gr\0oup",
)


def line_by_line(file: LogFile) -> Iterator[tuple[int, bytes]]:
    follows = False
    for number, piece in file.lines():
        follows = any(anchor in piece for anchor in ANCHORS) or (
            follows and INDENTED.match(piece) is not None
        )
        if follows:
            yield number, piece


def searched(file: LogFile) -> list[tuple[int, bytes]]:
    return [(file.line, piece) for piece in file.lines_with(ANCHORS)]


def log(seed: int) -> bytes:
    """Lines across the ends of blocks, a few of them very long, the last one often without an end."""
    choose = random.Random(seed)
    lines = [choose.choice(LINES) * choose.choice((1, 1, 1, 50)) for _ in range(choose.randrange(30_000))]
    for _ in range(choose.randrange(4)):
        filling = choose.choice((b"x", b" ")) * (LINE_MAX * choose.randrange(1, 3) + choose.randrange(-2, 3))
        lines.insert(choose.randrange(len(lines) + 1), choose.choice(LINES) + filling + choose.choice(LINES))
    return b"\n".join(lines)


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_searched_as_line_by_line(seed: int) -> None:
    data = log(seed)
    file = LogFile("log", BytesIO(data))
    assert searched(file) == [*line_by_line(LogFile("log", BytesIO(data)))]
    assert file.line == [*LogFile("log", BytesIO(data)).lines()][-1][0]


@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_breaks_off_is_searched_up_to_its_last_whole_line(seed: int) -> None:
    packed = gzip.compress(log(seed), 1)
    cut = packed[: random.Random(seed).randrange(1_000, len(packed))]
    file = LogFile("log", BytesIO(cut))
    assert searched(file) == [*line_by_line(LogFile("log", BytesIO(cut)))]
    assert "breaks off" in file.damage
    assert file.line == [*LogFile("log", BytesIO(cut)).lines()][-1][0]
