"""The entry point of a command: signals, standard output, exit codes.

It imports nothing that takes time, so that a signal at the very start finds a handler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from groupstorm.cli.stop_signals import catch_stop_signals, ignore_stop_signals, requested_stop
from groupstorm.problems import CheckFailed, ExitCode, ExpectedError, OutputError


def main() -> NoReturn:
    """Run the `groupstorm` command."""
    run_as_command(_groupstorm)


def run_as_command(run: Callable[[], object]) -> NoReturn:
    """Call ``run``. An expected error becomes one line on standard error and its exit code."""
    catch_stop_signals()
    from groupstorm.cli.standard_output import guard_standard_output

    guard_standard_output()
    code = _exit_code(run)
    ignore_stop_signals()
    if code in (ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        sys.stderr.flush()
        os._exit(code)  # at once: threads and libraries may want to finish their work first
    sys.exit(code)


def _exit_code(run: Callable[[], object]) -> int:
    from groupstorm.cli.standard_output import ReaderGone

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
    from groupstorm.cli.invocation import as_invoked
    from groupstorm.cli.standard_output import ReaderGone
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
    from groupstorm.cli.invocation import invoked_as

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
