"""Two processes of one group, each with a log of its own, and what the harness did with them."""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.imports.recording.members import RecordingFailed

TIMEOUT_S: Final = 90.0
LOOK_S: Final = 0.25


class Pair:
    """``actions``: what the harness did."""

    def __init__(self, logs: Path) -> None:
        self.actions: list[dict[str, Any]] = []
        self._logs = logs
        self._processes: dict[str, Process] = {}

    async def run(self, name: str, command: Sequence[str]) -> None:
        """Start a process; its log goes on if it had one before."""
        self._note("start", name)
        with (self._logs / f"{name}.log").open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=DEVNULL, stderr=log
            )

    async def stop(self, name: str) -> None:
        self._note("stop", name)
        self.ask_to_stop(self._processes[name])
        await self._processes.pop(name).wait()

    def ask_to_stop(self, process: Process) -> None:
        process.terminate()

    async def kill(self, name: str) -> None:
        self._note("kill", name)
        self._processes[name].kill()
        await self._processes.pop(name).wait()

    async def end(self) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()

    def _note(self, do: str, name: str) -> None:
        self.actions.append({"time_ms": now_ms(), "do": do, "member": name})


async def until(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait until ``condition`` holds. Raises RecordingFailed, with ``otherwise``, if it does not in time."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not await asyncio.to_thread(condition):
        if time.monotonic() > deadline_s:
            raise RecordingFailed(otherwise)
        await asyncio.sleep(LOOK_S)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
