"""The user's own words for the command, so that a line that names a command can be run as it is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from groupstorm.visible import visible_word

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
