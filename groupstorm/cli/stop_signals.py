"""Stop signals (SIGINT, SIGTERM, SIGHUP): the first one stops the command, later ones change nothing.

The handler raises `Stopped` in the main thread, so that `with` and `finally` take away what is half done.
A second exception in the middle of that would leave half of it: the handler ignores every later signal.
A command that has not ended `DEADLINE_S` after the first signal is ended where it stands.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from groupstorm.held_signals import heeded_stop_signals, leave_stopping_to_parent
from groupstorm.problems import ExitCode

DEADLINE_S = 15
"""Long enough for a container to stop and for topics on a remote cluster to be deleted."""

_WORDS = {
    signal.SIGINT: (ExitCode.INTERRUPTED, b"interrupted"),
    signal.SIGTERM: (ExitCode.TERMINATED, b"terminated"),
    signal.SIGHUP: (ExitCode.HUNG_UP, b"hung up"),
}


#: Standard error as it was at the start: Spark's session sends descriptor 2 elsewhere for a while.
_stderr: list[int] = []

_requested: list[ExitCode] = []


class Stopped(SystemExit):
    """A signal asks the command to stop.

    As a SystemExit it passes through asyncio's event loop, Typer and handlers of Exception.
    """

    def __init__(self, exit_code: ExitCode) -> None:
        super().__init__(int(exit_code))


def catch_stop_signals() -> None:
    """Install the handler, unless whoever started the process has it ignore the signal (`nohup`)."""
    with suppress(OSError):  # standard error is closed
        _stderr.append(os.dup(2))
    for number in heeded_stop_signals():
        signal.signal(number, _stop)


def ignore_stop_signals() -> None:
    """From here on the process ends in its own way."""
    leave_stopping_to_parent()
    signal.setitimer(signal.ITIMER_REAL, 0)


def requested_stop() -> ExitCode | None:
    """The exit code of the signal that asked the command to stop; None if there was none."""
    return _requested[0] if _requested else None


def _stop(number: int, _frame: FrameType | None) -> None:
    exit_code, word = _WORDS[signal.Signals(number)]
    for every in heeded_stop_signals():
        signal.signal(every, _ignore)
    _requested.append(exit_code)
    _say(b"groupstorm: " + word + b", stopping\n")

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        _say(b"groupstorm: not stopped after %d s, ended\n" % DEADLINE_S)
        os._exit(exit_code)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_S)
    raise Stopped(exit_code)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN, which the processes that we start while stopping would inherit."""


def _say(line: bytes) -> None:
    """On standard error, past its buffer; on a terminal behind the ^C and a line of progress."""
    for descriptor in _stderr:
        with suppress(OSError):  # nobody reads it
            os.write(descriptor, b"\n" + line if os.isatty(descriptor) else line)
