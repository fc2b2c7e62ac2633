"""Processes that tests start: none is waited for without a deadline, and a failure shows its last lines."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, AnyStr

#: Far more than any process of a test takes on a busy machine.
DEADLINE_S = 300.0

#: For what fetches from a network, or compiles.
BUILD_DEADLINE_S = 840.0

_SHOWN_LINES = 40

#: How long the output of a process may last that has been killed.
_GRACE_S = 10.0


def run_process(
    command: str | Sequence[str | PathLike[str]],
    *,
    deadline_s: float = DEADLINE_S,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`; a process that goes on beyond the deadline is killed and fails the test."""
    try:
        return subprocess.run(command, timeout=deadline_s, check=check, **options)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(_too_late(command, deadline_s, late.stdout, late.stderr)) from None


def run_build(command: Sequence[str | PathLike[str]], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run what fetches or compiles; the caller says what its exit code means."""
    return run_process(
        command,
        deadline_s=BUILD_DEADLINE_S,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        **options,
    )


def outcome_of(process: subprocess.Popen[AnyStr], deadline_s: float = DEADLINE_S) -> tuple[AnyStr, AnyStr]:
    """Its output and errors when it has ended; beyond the deadline it is killed and fails the test."""
    try:
        return process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        raise AssertionError(_too_late(process.args, deadline_s, *_killed(process))) from None


def next_line(process: subprocess.Popen[str], deadline_s: float = DEADLINE_S) -> str:
    """The next line of its output; a process that prints none in time is killed and fails the test."""
    assert process.stdout is not None
    with killed_after(process, deadline_s):
        line = process.stdout.readline()
    if line:
        return line
    raise AssertionError(f"{process.args!r} ends without the line{last_lines(*_killed(process))}")


@contextmanager
def killed_after(process: subprocess.Popen[Any], deadline_s: float = DEADLINE_S) -> Iterator[None]:
    """Kill the process if the block takes longer: whoever reads its output then reads the end of it."""
    timer = threading.Timer(deadline_s, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def last_lines(*printed: str | bytes | None) -> str:
    """The last lines of each output, for the message of a failure."""
    texts = [one.decode(errors="replace") if isinstance(one, bytes) else one or "" for one in printed]
    return "".join("\n" + "\n".join(text.splitlines()[-_SHOWN_LINES:]) for text in texts if text)


def _killed(process: subprocess.Popen[Any]) -> tuple[str | bytes | None, str | bytes | None]:
    process.kill()
    try:
        return process.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired as held:  # another process holds the pipes
        return held.stdout, held.stderr


def _too_late(command: object, deadline_s: float, *printed: str | bytes | None) -> str:
    return f"{command} has not ended within {deadline_s:g} s{last_lines(*printed)}"
