"""The lines of a log as its program wrote them, out of what a terminal, a box or a quotation made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from groupstorm.imports.envelopes import as_written, margin
from groupstorm.imports.times import sights

#: No terminal is narrower.
_WIDTH_MIN: Final = 40
#: Looked at where a log's lines begin without a time.
_BEGINNING: Final = 12
#: The time of a line's beginning ends before this character.
_FRONT_MAX: Final = 100
#: The first line of a record of java.util.logging: when, and in which class and method; the message follows.
_JUL = re.compile(r"\w{3} \d\d?, \d{4},? \d\d?:\d\d:\d\d\s[AP]M [\w.$]+(?: [\w.$<>]+)?$")
#: The frame of a line: Markdown's quotation, or a box.
_FRAME = re.compile(r"^\s*(?:(?:> ?)+|[│┃║])|\s*[│┃║]\s*$")


class Framing:
    """Sees in the beginning of a log whether its lines are framed, and at which width they are wrapped."""

    def __init__(self, head: str) -> None:
        lines = [line for line in map(as_written, head.splitlines()) if line.strip()]
        self._has_objects = any(line.strip() == "{" for line in lines[:3])
        #: Further lines of a message have the margin, too, and so no indentation.
        self._has_margin = any(map(margin, lines[:3]))
        self._has_headers = any(map(_JUL.match, lines))
        self._is_framed = bool(lines) and _FRAME.search(lines[0]) is not None
        self._padding = 0
        lines = [self._unframed(line) for line in lines]
        if self._is_framed and all(line.startswith(" ") for line in lines):
            self._padding = 1
            lines = [line[1:] for line in lines]
        first = next(filter(_begins_record, lines), lines[0] if lines else "")  # a page may have words above
        self._shape = _shape(first)
        self._width = self._wrapped_at(lines)

    @property
    def is_plain(self) -> bool:
        has_more = self._has_objects or self._has_margin or self._has_headers
        return not (self._width or self._is_framed or has_more)

    def joined(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Each line as it was, with the number of its first part."""
        first, line, last = 0, "", ""
        for number, raw in lines:
            part = self._unframed(as_written(raw.rstrip("\r\n")))
            if first and self._has_objects and not _ends_object(line, last):
                line += part  # of a JSON record that is printed over several lines
            elif first and self._has_headers and _JUL.match(last):
                first, line = number, f"{line} {part}"
            elif first and self._goes_on(last, part):
                line = line + " " * (self._width - len(last)) + part  # copies have no spaces at line ends
            else:
                if first:
                    yield first, line
                first, line = number, part
            last = part
        if first:
            yield first, line

    def _unframed(self, line: str) -> str:
        return _FRAME.sub("", line)[self._padding :] if self._is_framed else line

    def _goes_on(self, line: str, following: str) -> bool:
        return 0 <= self._width - len(line) <= 1 and _shape(following) != self._shape

    def _wrapped_at(self, lines: Sequence[str]) -> int:
        """The width of the longest lines, if lines that begin like no other mostly stand behind them.

        0 if the log is not wrapped.
        """
        self._width = max(map(len, lines), default=0)
        if self._width < _WIDTH_MIN:
            return 0
        wrapped = sum(self._goes_on(line, following) for line, following in pairwise(lines))
        unlike = (line for line in lines if _shape(line) != self._shape)
        others = sum(not line.startswith("\t") for line in unlike) - wrapped  # settings are indented
        full = sum(len(line) == self._width for line in lines)
        is_usual = self._is_framed or self._width % 10 == 0 or full > 1
        return self._width if wrapped > others and is_usual else 0


def _ends_object(line: str, last: str) -> bool:
    """Whether ``last`` is the last line of a JSON record that ``line`` begins with, if it begins with one."""
    indentation = line[: len(line) - len(line.lstrip())]
    return not line.lstrip().startswith("{") or last.rstrip(" ,") == f"{indentation}}}"


def _begins_record(line: str) -> bool:
    """Whether a line has a time, or an object."""
    return line.lstrip().startswith("{") or bool(sights(line[:_FRONT_MAX]))


def _shape(line: str) -> str:
    """The beginning that a log's lines have in common: the text before the first time, without its words."""
    seen = [] if line.lstrip().startswith("{") else sights(line[:_FRONT_MAX])
    front, form = (line[: seen[0].start], seen[0].form) if seen else (line[:_BEGINNING], "")
    return re.sub(r"[\w.-]+", "w", front) + form
