"""The errors that end a command with one line and an exit code, and the table of the exit codes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class ExitCode(IntEnum):
    """The exit codes of every command. `groupstorm --help` and docs/development.md print this table."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    SUCCESS = 0, "success"
    CHECK_FAILED = (
        1,
        "a check failed: an invariant, a livelock, --require, a replay, an assignor's promise, an alert",
    )
    INPUT = 2, "an option, a file or a name cannot be understood"
    OUTPUT = 3, "the output cannot be written: a full disk, an I/O error, a lost permission"
    HUNG_UP = 129, "hung up: the terminal has been closed (SIGHUP)"
    INTERRUPTED = 130, "interrupted (SIGINT)"
    READER_GONE = 141, "the reader of standard output has gone (`| head`)"
    TERMINATED = 143, "terminated (SIGTERM)"


class ExpectedError(Exception):
    """An error that ends a command with its message, one line on standard error, and with ``exit_code``."""

    exit_code: ClassVar[ExitCode]


class InputError(ExpectedError, ValueError):
    """Input that cannot be understood: exit code 2.

    The message is one line that names the place (file, line, field), the value and what was expected.
    """

    exit_code = ExitCode.INPUT


class CheckFailed(ExpectedError):
    """A check failed that the user asked for: an invariant, a `--require`, a replay. Exit code 1."""

    exit_code = ExitCode.CHECK_FAILED


class OutputError(ExpectedError):
    """The output cannot be written: the disk is full, the device fails, permission is lost. Exit code 3.

    The message is one line that names the file and the system's reason.
    """

    exit_code = ExitCode.OUTPUT


def not_one_of(name: object, known: Iterable[str], shown_max: int = 30) -> str:
    """The end of a message on a name that nobody knows: the nearest one, or all, unless they are too many."""
    names = list(known)
    every = f" is not one of {', '.join(names)}" if len(names) <= shown_max else ""
    return f"{name!r}{did_you_mean(str(name), names, ': ', every)}"


def did_you_mean(name: str, known: Iterable[str], beginning: str = "; ", otherwise: str = "") -> str:
    """``beginning`` and the one or two known names that ``name`` may be a slip of; else ``otherwise``."""
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name, list(known), n=2)
    return f"{beginning}did you mean {' or '.join(near)}?" if near else otherwise


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turn an OSError of the block into an OutputError that names ``path``."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # pyarrow's strerror is a text of its own
        raise OutputError(f"{path}: cannot be written: {reason}") from error
