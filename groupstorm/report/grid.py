"""Tables in plain text that fit a width, and the same as CSV, Markdown or HTML.

No word and no number is ever cut: headings are broken behind a hyphen, a point or an underscore, and columns
that do not fit beside the others stand in a block of their own below. A line that a reader greps for begins
with the name of its row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from groupstorm.visible import visible, visible_csv, visible_markdown, visible_xml, wrapped

GAP = 2
"""Spaces between two columns."""

MARK_WIDTH = 2
"""Kept free behind the last column for a row's mark."""

_PARTS = re.compile(r"[^-_. ]*[-_. ]?")


@dataclass(frozen=True, slots=True)
class Row:
    """One line. ``below``: cells of a second line under it, or none. ``mark``: a sign at its end."""

    name: str
    cells: Sequence[str]
    below: Sequence[str] = ()
    below_name: str = ""
    mark: str = ""

    def in_one_line(self) -> list[str]:
        """The name with its mark, then the cells, each with what stands under it in brackets."""
        below = [*self.below, *[""] * (len(self.cells) - len(self.below))]
        pairs = zip(self.cells, below, strict=True)
        cells = [f"{cell} ({under})" if under else cell for cell, under in pairs]
        return [f"{self.name} {self.mark}".strip(), *cells]


@dataclass(frozen=True, slots=True)
class Grid:
    """``headings``: of the column of names, then of each column of cells."""

    headings: Sequence[str]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
    left: frozenset[int] = frozenset()
    """Columns of cells, from 0, that are aligned to the left."""

    def text(self, width: int) -> list[str]:
        """The lines. One is longer than ``width`` only if a name and one cell alone are."""
        shown = self._shown_by(visible)
        lines = [shown.title] if shown.title else []
        names = shown._names_width(width)
        for number, columns in enumerate(shown._blocks(names, width)):
            if number:
                lines.append("")
            lines += shown._block(names, columns)
        return [
            line.rstrip() for line in (*lines, *(one for note in self.notes for one in wrapped(note, width)))
        ]

    def _shown_by(self, show: Callable[[str], str]) -> Grid:
        rows = [
            Row(
                show(row.name),
                [*map(show, row.cells)],
                [*map(show, row.below)],
                show(row.below_name),
                row.mark,
            )
            for row in self.rows
        ]
        return Grid([*map(show, self.headings)], rows, show(self.title), [*map(show, self.notes)], self.left)

    def markdown(self) -> list[str]:
        """A table of GitHub's Markdown."""
        shown = self._shown_by(visible_markdown)
        lines = [f"**{shown.title}**", ""] if shown.title else []
        lines.append(_piped(shown.headings))
        sides = [":--" if number in self.left else "--:" for number in range(len(self.headings) - 1)]
        lines.append(_piped([":--", *sides]))
        lines += [_piped(row.in_one_line()) for row in shown.rows]
        return [*lines, *(line for note in shown.notes for line in ("", note))]

    def html(self) -> str:
        """A table of HTML, with the title as its caption; notes stand below it."""
        shown = self._shown_by(visible_xml)
        caption = f"<caption>{shown.title}</caption>" if shown.title else ""
        head = "".join(f"<th>{heading}</th>" for heading in shown.headings)
        body = "".join(
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row.in_one_line())}</tr>" for row in shown.rows
        )
        notes = "".join(f"<p>{note}</p>" for note in shown.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _names_width(self, width: int) -> int:
        """Names of rows may be broken into several lines if they take more than half of ``width``."""
        longest = max((len(name) for row in self.rows for name in (row.name, row.below_name)), default=0)
        longest = max(longest, _narrowest(self.headings[0]))
        if longest <= width // 2:
            return longest
        return max(width // 2, *(_narrowest(row.name) for row in self.rows))

    def _column_width(self, number: int) -> int:
        cells = [row.cells[number] for row in self.rows]
        cells += [row.below[number] for row in self.rows if row.below]
        longest = max(map(len, cells), default=0)
        heading = self.headings[number + 1]
        return max(longest, _narrowest(heading), min(len(heading), longest + 2))

    def _blocks(self, names: int, width: int) -> Iterator[list[int]]:
        """The columns of each block: as many as fit."""
        marks = MARK_WIDTH if any(row.mark for row in self.rows) else 0
        block: list[int] = []
        used = names + marks
        for number in range(len(self.headings) - 1):
            more = GAP + self._column_width(number)
            if block and used + more > width:
                yield block
                block, used = [], names + marks
            block.append(number)
            used += more
        if block:
            yield block

    def _block(self, names: int, columns: Sequence[int]) -> Iterator[str]:
        widths = [self._column_width(number) for number in columns]
        sides = [number in self.left for number in columns]
        headings = [_broken(self.headings[0], names)]
        headings += [_broken(self.headings[c + 1], w) for c, w in zip(columns, widths, strict=True)]
        depth = max(map(len, headings))
        for level in range(depth):
            first, *rest = ([""] * (depth - len(lines)) + lines for lines in headings)
            yield _line(first[level], names, [lines[level] for lines in rest], widths, sides)
        for row in self.rows:
            *above, last = _broken(row.name, names)
            yield from above
            line = _line(last, names, [row.cells[number] for number in columns], widths, sides)
            yield f"{line} {row.mark}"
            if row.below and any(row.below[number] for number in columns):
                yield _line(row.below_name, names, [row.below[number] for number in columns], widths, sides)


def csv_text(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated values as spreadsheets and pandas read them; null is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(visible_csv, headings))
    writer.writerows(["" if value is None else visible_csv(value) for value in row] for row in rows)
    return out.getvalue()


def _line(
    name: str, names: int, cells: Sequence[str], widths: Sequence[int], to_the_left: Sequence[bool]
) -> str:
    parts = [
        f"{' ' * GAP}{cell:{'<' if left else '>'}{width}}"
        for cell, width, left in zip(cells, widths, to_the_left, strict=True)
    ]
    return f"{name:{names}}{''.join(parts)}"


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _parts(text: str) -> list[str]:
    return [part for part in _PARTS.findall(text) if part] or [""]


def _narrowest(text: str) -> int:
    return max(len(part.rstrip()) for part in _parts(text))


def _broken(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` characters, broken behind a hyphen, a point, a blank or _."""
    lines = [""]
    for part in _parts(text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]
