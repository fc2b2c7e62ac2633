"""A process of a service: what it writes, how it is signalled, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from groupstorm.chaos.service import ServiceProcess
from groupstorm.problems import InputError
from groupstorm.storms.live.clock import tasks
from tests.waiting import until

PATIENCE_S = 30
#: Starts a child that outlives it, and says both process ids.
WITH_CHILD = (
    "import os, subprocess, sys;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(999)']);"
    "print(os.getpid(), child.pid, flush=True)"
)


def state_of(pid: int) -> str:
    """As ps shows it: R, S, T (stopped), Z; "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_gone(pid: int) -> bool:
    return state_of(pid) in ("", "Z")


class Run:
    """One process of Python code, with what is seen of it."""

    def __init__(self, code: str, log: Path, spawn: Callable[..., object]) -> None:
        self.lines: list[bytes] = []
        self.codes: list[int] = []
        command = [sys.executable, "-c", code]
        self.process = ServiceProcess(command, os.environ, log, self.lines.append, self.codes.append, spawn)


async def test_lines_are_read_and_kept(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "one.log"
    async with tasks() as spawn:
        run = Run("import sys; print('out', flush=True); sys.exit('the last line')", log, spawn)
        await run.process.start()
        await until(lambda: run.codes)
        assert run.codes == [1]
        assert run.lines == [b"out\n"]
        assert run.process.last_line() == "the last line"
        assert (tmp_path / "logs" / "one.stdout.log").read_bytes() == b"out\n"


async def test_what_it_has_started_ends_with_it(tmp_path: Path) -> None:
    """By itself: the process ends, its child would go on."""
    async with tasks() as spawn:
        run = Run(WITH_CHILD, tmp_path / "log", spawn)
        await run.process.start()
        await until(lambda: run.codes)
        _, child = map(int, run.lines[0].split())
        await until(lambda: is_gone(child))


async def test_signals_reach_all_of_it(tmp_path: Path) -> None:
    async with tasks() as spawn:
        run = Run(f"{WITH_CHILD}; child.wait()", tmp_path / "log", spawn)
        await run.process.start()
        await until(lambda: run.lines)
        pids = list(map(int, run.lines[0].split()))
        run.process.send(signal.SIGSTOP)
        await until(lambda: {state_of(pid) for pid in pids} == {"T"})
        run.process.send(signal.SIGCONT)
        await until(lambda: "T" not in {state_of(pid) for pid in pids})
        await run.process.ended()
        await until(lambda: all(map(is_gone, pids)))
        await until(lambda: run.codes == [-signal.SIGKILL])


async def test_a_process_that_has_been_ended_does_not_start(tmp_path: Path) -> None:
    async with tasks() as spawn:
        run = Run("print('started')", tmp_path / "log", spawn)
        await run.process.ended()
        await run.process.start()
        assert not (tmp_path / "log").exists()


async def test_a_program_that_the_system_refuses(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("no program")
    async with tasks() as spawn:
        process = ServiceProcess([str(program)], os.environ, tmp_path / "log", None, print, spawn)
        with pytest.raises(InputError, match=r"--service: .*program: Permission denied"):
            await process.start()
