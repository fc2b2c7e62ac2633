"""Standard output whose errors say that they are standard output's.

A print that fails raises an OSError like any other file's. Here it raises OutputError (exit code 3), or
ReaderGone if the reader of a pipe (`| head`) has closed it.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from groupstorm.problems import OutputError


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


def guard_standard_output() -> None:
    """Replace `sys.stdout` by one whose errors are OutputError and ReaderGone."""
    if sys.stdout is None:  # closed by whoever started the process
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # until the process ends
        return
    before = sys.stdout
    before.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_StandardOutput()),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.isatty(),
    )
