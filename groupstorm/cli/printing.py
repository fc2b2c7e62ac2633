"""Printing for commands: tables and paragraphs as wide as the terminal, 80 columns in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from groupstorm.cli.invocation import command_lines
from groupstorm.problems import InputError
from groupstorm.visible import visible, visible_json, without_controls, wrapped

if TYPE_CHECKING:
    from groupstorm.report.grid import Grid

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


class Shape(StrEnum):
    """The form of a command's standard output."""

    TABLES = "tables"
    JSON = "--json"
    CSV = "--csv"
    MARKDOWN = "--markdown"


def shape(as_json: bool, as_csv: bool, as_markdown: bool) -> Shape:
    """The one that was asked for. Raises InputError if several were."""
    asked = [
        chosen
        for chosen, given in ((Shape.JSON, as_json), (Shape.CSV, as_csv), (Shape.MARKDOWN, as_markdown))
        if given
    ]
    if len(asked) > 1:
        raise InputError(f"{asked[0]}, {asked[1]}: one of them at a time")
    return asked[0] if asked else Shape.TABLES


def width() -> int:
    """Columns of the terminal; COLUMNS if it is set; else 80."""
    return max(shutil.get_terminal_size((80, 24)).columns, 20)


def print_grid(grid: Grid, chosen: Shape = Shape.TABLES) -> None:
    """Print a table as text or, with `Shape.MARKDOWN`, for a page."""
    if chosen is Shape.MARKDOWN:
        print("\n".join(grid.markdown()), end="\n\n")
        return
    lines = grid.text(width())
    if grid.title:
        lines[0] = _emphasized(lines[0])
    print("\n".join(lines), end="\n\n")


def print_paragraph(text: str, emphasized: bool = False) -> None:
    """A paragraph without broken words."""
    lines = "\n".join(wrapped(text, width()))
    print(_emphasized(lines) if emphasized else lines)


def print_paragraphs(texts: Iterable[str], prefix: str = "") -> None:
    """Several paragraphs, one below the other, each behind the prefix."""
    for text in texts:
        print_paragraph(f"{prefix}{text}")


def print_indented(text: str, first: str = "", more: str = "", *, to_stderr: bool = False) -> None:
    """A paragraph whose lines begin with ``first``, and from the second on with ``more``."""
    lines = wrapped(text, width() - max(len(first), len(more)))
    joined = f"\n{more}".join(lines)
    print(f"{first}{joined}", file=sys.stderr if to_stderr else None)


def print_line(text: str, *, flush: bool = False) -> None:
    """One line of text, however long it is."""
    print(visible(text), flush=flush)


def print_json(value: Any) -> None:
    """One line of JSON that reads back as ``value``."""
    print(visible_json(value))


def print_made(text: str, end: str = "", *, flush: bool = False) -> None:
    """Print lines of tables, pages and commands: their makers have made all names visible."""
    print(text, end=end, flush=flush)


def print_lines_aside(text: str) -> None:
    """Lines on standard error, whose escapes are not escaped again."""
    print("\n".join(map(without_controls, text.split("\n"))), file=sys.stderr)


def print_command(label: str, *words: str) -> None:
    """``label`` and the command that ``words`` name, to be run as it stands."""
    print("\n".join(command_lines(label, width(), *words)))


def print_progress(text: str) -> None:
    """One line on standard error."""
    print(without_controls(text), file=sys.stderr, flush=True)


def _emphasized(text: str) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"{_BOLD}{text}{_PLAIN}"
