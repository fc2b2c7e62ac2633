"""Printing for commands: tables and paragraphs as wide as the terminal, 80 columns in a pipe.

A line that names a command has the user's own words for it, so that it can be run as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupstorm.problems import InputError
from groupstorm.visible import visible, visible_json, visible_word, without_controls, wrapped

#: `./dev` sets it to its own name and `run`.
COMMAND_VARIABLE = "GROUPSTORM_COMMAND"

_NAMED = re.compile(r"(?<=`)groupstorm (?=[a-z])|(?<=Example: )groupstorm ")


def invoked_as() -> str:
    """The words in front of a command's own: `groupstorm`, `./dev run` or `python -m groupstorm`."""
    if COMMAND_VARIABLE in os.environ:
        return os.environ[COMMAND_VARIABLE]
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        # A virtual environment's Python is a link to another one, which does not know its packages.
        return f"{_shown(Path(sys.executable), follow_links=False)} -m groupstorm"
    return _shown(called)


def _shown(program: Path, follow_links: bool = True) -> str:
    """Its name if the shell finds it by that, else its path."""
    found = shutil.which(program.name)
    if found is not None and program.exists() and _same(Path(found), program, follow_links):
        return program.name
    return shlex.quote(str(program))


def _same(found: Path, program: Path, follow_links: bool) -> bool:
    if follow_links:
        return found.samefile(program)
    return found.name == program.name and found.parent.samefile(program.parent)


def command_line(*words: str) -> str:
    """A command that does what ``words`` say, quoted for a shell."""
    return f"{invoked_as()} {' '.join(map(visible_word, words))}"


def command_lines(label: str, width: int, *words: str) -> list[str]:
    """``label`` and a command, over lines of ``width`` columns that a shell reads as one.

    An option stays beside its value; a word that is longer than a line keeps its line.
    """
    parts = [invoked_as()]
    for word in words:
        if parts[-1].startswith("--") and " " not in parts[-1]:
            parts[-1] += f" {visible_word(word)}"
        else:
            parts.append(visible_word(word))
    lines = [label]
    for part in parts:
        if len(lines[-1]) + len(part) + 3 <= width or not lines[-1].strip():
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"  {part}")
    return lines


def as_invoked(text: str) -> str:
    """``text`` with the commands that it names between backticks, or as examples, as the user calls them."""
    return _NAMED.sub(lambda _: f"{invoked_as()} ", text)


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
    if prefix:
        sys.stdout.flush()  # a run follows, which may take long


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
