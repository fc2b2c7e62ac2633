"""Forks a process per task, several at a time, each with a limit to the time that it computes."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

#: Seconds on the wall for a second that may be computed: the machine has other work, and tests wait.
_WALL: Final = 4
_MEMORY_BYTES: Final = 6 * 2**30


class Task(NamedTuple):
    """``number`` is the caller's; ``cpu_s`` is what it may compute."""

    number: int
    cpu_s: float


class _Running(NamedTuple):
    task: Task
    process: int
    until: float


def fork_each(tasks: Sequence[Task], jobs: int, done: Callable[[int, int], None]) -> Task | None:
    """In a forked process: the task that is its own, to be ended with `os._exit`.

    In the caller's process: None, after ``done`` was called with each task's number and its process's exit
    code. One that takes too long is killed, with all that it started.
    """
    waiting = list(reversed(tasks))
    with selectors.DefaultSelector() as ends:
        try:
            while waiting or ends.get_map():
                while waiting and len(ends.get_map()) < jobs:
                    task = waiting.pop()
                    end, inherited = os.pipe()
                    process = os.fork()
                    if process == 0:
                        _prepare(task.cpu_s)
                        return task
                    os.close(inherited)
                    until = time.monotonic() + 10 + _WALL * task.cpu_s
                    ends.register(end, selectors.EVENT_READ, _Running(task, process, until))
                _end_some(ends, done)
        except BaseException:
            for key in ends.get_map().values():
                _end(key.data.process, kill=True)
            raise
    return None


def _prepare(cpu_s: float) -> None:
    """A process group of its own, to be killed as one, and limits to time and memory."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    seconds = int(cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def limit_from_now(cpu_s: float) -> None:
    """This process ends when it has computed for so much longer; the limit of its task stays."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(hard, int(time.process_time() + cpu_s) + 1), hard))


def _end_some(ends: selectors.BaseSelector, done: Callable[[int, int], None]) -> None:
    """Wait for processes that end (their end of the pipe closes), and kill those whose time is up."""
    soonest = min(key.data.until for key in ends.get_map().values())
    ended = {key.fd for key, _events in ends.select(max(0.0, soonest - time.monotonic()))}
    for key in list(ends.get_map().values()):
        running: _Running = key.data
        late = running.until <= time.monotonic()
        if key.fd in ended or late:
            ends.unregister(key.fd)
            os.close(key.fd)
            done(running.task.number, _end(running.process, kill=key.fd not in ended))


def _end(process: int, kill: bool) -> int:
    if kill:
        try:
            os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:  # it has not made its group yet
            os.kill(process, signal.SIGKILL)
    _process, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)
