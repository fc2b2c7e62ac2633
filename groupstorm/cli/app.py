"""The entry point of a command: stop signals, standard output, exit codes.

It imports nothing that takes time, so that a signal at the very start finds a handler.

The first stop signal (SIGINT, SIGTERM, SIGHUP) stops the command, later ones change nothing. The handler
raises `Stopped` in the main thread, so that `with` and `finally` take away what is half done. A second
exception in the middle of that would leave half of it: the handler ignores every later signal. A command that
has not ended `DEADLINE_S` after the first signal is ended where it stands.

A print that fails raises an OSError like any other file's. Here it raises OutputError (exit code 3), or
ReaderGone if the reader of a pipe (`| head`) has closed it. Commands print names so that they are visible.
Usage errors, warnings and whatever else libraries print pass here, and so does standard error.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from groupstorm.held_signals import heeded_stop_signals, leave_stopping_to_parent
from groupstorm.problems import CheckFailed, ExitCode, ExpectedError, OutputError


def main() -> NoReturn:
    """Run the `groupstorm` command."""
    run_as_command(_groupstorm)


def run_as_command(run: Callable[[], object]) -> NoReturn:
    """Call ``run``. An expected error becomes one line on standard error and its exit code."""
    catch_stop_signals()
    guard_standard_output()
    code = _exit_code(run)
    ignore_stop_signals()
    if code in (ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        sys.stderr.flush()
        os._exit(code)  # at once: threads and libraries may want to finish their work first
    sys.exit(code)


def _exit_code(run: Callable[[], object]) -> int:
    try:
        code = _called(run)
        sys.stdout.flush()
    except ReaderGone:
        return ExitCode.READER_GONE
    except ExpectedError as problem:
        return requested_stop() or _failed(problem)
    except BaseException:
        stop = requested_stop()  # whatever fails while the command stops, it fails because of that
        if stop is None:
            raise
        return stop
    if code == ExitCode.INTERRUPTED and requested_stop() is None:  # a library had its own handler just then
        print("groupstorm: interrupted", file=sys.stderr)
    return requested_stop() or code


def _failed(problem: ExpectedError) -> int:
    """Print the error behind everything that the command has printed before."""
    from groupstorm.cli.printing import as_invoked
    from groupstorm.visible import without_controls

    try:
        sys.stdout.flush()
    except ReaderGone:
        pass
    except OutputError as output:
        problem = output
    text = as_invoked(str(problem))
    lines = text.split("\n") if isinstance(problem, CheckFailed) else [text]
    print("groupstorm: " + "\n".join(map(without_controls, lines)), file=sys.stderr)
    return problem.exit_code


def _groupstorm() -> None:
    from groupstorm.cli.commands import app
    from groupstorm.cli.printing import invoked_as

    # Typer names a variable and a function of the shell after it: a path would be no name.
    completes = "_GROUPSTORM_COMPLETE" in os.environ or sys.argv[1:2] in (
        ["--install-completion"], ["--show-completion"],
    )  # fmt: skip
    app(prog_name="groupstorm" if completes else invoked_as())


def _called(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as ended:  # how Typer says that it is done, or that the usage is wrong
        return ended.code if isinstance(ended.code, int) else ExitCode.SUCCESS
    return ExitCode.SUCCESS


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
        from groupstorm.visible import visible_lines

        super().write(visible_lines(text, self.isatty()))
        return len(text)


def guard_standard_output() -> None:
    """Replace `sys.stdout` by one whose errors are OutputError or ReaderGone. Neither shows controls."""
    if sys.stderr is not None:
        errors = io.BufferedWriter(_StandardError())
        sys.stderr = _VisibleText(errors, sys.stderr.encoding, "backslashreplace", line_buffering=True)
    if sys.stdout is None:  # closed by whoever started the process
        from pathlib import Path

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
