"""Standard output whose errors say that they are standard output's, and which shows no controls.

A print that fails raises an OSError like any other file's. Here it raises OutputError (exit code 3), or
ReaderGone if the reader of a pipe (`| head`) has closed it. Commands print names so that they are visible.
Usage errors, warnings and whatever else libraries print pass here, and so does standard error.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from groupstorm.problems import OutputError
from groupstorm.visible import visible_lines


class ReaderGone(BaseException):
    """The reader of standard output has closed its end of the pipe. No Exception: nobody handles it."""


class _StandardOutput(io.FileIO):
    """File descriptor 1. After an error it drops what is written, so that closing it raises nothing."""

    def __init__(self) -> None:
        super().__init__(1, "w", closefd=False)
        self._failed = False

    def write(self, data: Any, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            self._failed = True
            raise ReaderGone from None
        except OSError as error:
            self._failed = True
            raise OutputError(f"standard output: cannot be written: {error.strerror}") from error


class _StandardError(io.FileIO):
    """File descriptor 2. What it does not take is lost: there is nobody to be told."""

    def __init__(self) -> None:
        super().__init__(2, "w", closefd=False)

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


class _VisibleText(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(visible_lines(text, self.isatty()))
        return len(text)


def guard_standard_output() -> None:
    """Replace `sys.stdout` by one whose errors are OutputError or ReaderGone. Neither shows controls."""
    if sys.stderr is not None:
        errors = io.BufferedWriter(_StandardError())
        sys.stderr = _VisibleText(errors, sys.stderr.encoding, "backslashreplace", line_buffering=True)
    if sys.stdout is None:  # closed by whoever started the process
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # until the process ends
        return
    before = sys.stdout
    before.flush()
    sys.stdout = _VisibleText(
        io.BufferedWriter(_StandardOutput()),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.isatty(),
    )
