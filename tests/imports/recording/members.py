"""The member processes of a recording: started, stopped, killed; what each reports, and when it had what."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LINE_BYTES = 1 << 20
_READY_S = 120.0
_ROOT = Path(__file__).parents[3]

#: Reports that tell what a member has.
ASSIGNED, REVOKED, LOST = "assigned", "revoked", "lost"
CLOSED, FAILED, RESUMED = "closed", "failed", "resumed"


class RecordingFailed(Exception):
    """The members did not do what the situation asks for; the message says what they did."""


def wall_clock_ms(monotonic_ns: int) -> int:
    """Milliseconds since 1970 of a time of CLOCK_MONOTONIC."""
    return (time.time_ns() - time.monotonic_ns() + monotonic_ns) // 1_000_000


class MemberProcess:
    """One member in a process of its own, whose standard error is appended to ``log``."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.owned: set[str] = set()
        #: What it reported: the time in milliseconds since 1970, the event, partitions.
        self.reports: list[Mapping[str, Any]] = []
        self._command = command
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def launch(self) -> None:
        """Start the process, and wait until it is ready for its order."""
        with self._log.open("ab") as log:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_BYTES,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
            )
        assert process.stdout is not None
        async with asyncio.timeout(_READY_S):
            ready = await process.stdout.readline()
        if not ready:
            raise RecordingFailed(f"{self.name} ended before it was ready: see {self._log}")
        self._reading = asyncio.ensure_future(self._read(process.stdout))

    def start(self, order: Mapping[str, Any]) -> None:
        """Start the consumer."""
        self._tell(order)

    def busy(self, for_s: float) -> None:
        self._tell({"do": "busy", "member": self.name, "for_s": for_s})

    def close(self) -> None:
        """Close the consumer, which reports it."""
        self._tell({"do": "stop", "member": self.name})

    async def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    def has_reported(self, event: str) -> bool:
        return any(one["event"] == event for one in self.reports)

    def _tell(self, command: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            report = json.loads(line)
            event, partitions = report["event"], report.get("partitions", [])
            if event == ASSIGNED:
                self.owned.update(partitions)
            elif event in (REVOKED, LOST):
                self.owned.difference_update(partitions)
            if event in (ASSIGNED, REVOKED, LOST, CLOSED, FAILED, RESUMED, "busy"):
                time_ms = wall_clock_ms(report["t"])
                said: dict[str, Any] = {"time_ms": time_ms, "member": self.name, "event": event}
                if "partitions" in report:
                    said["partitions"] = sorted(partitions)
                if "error" in report:
                    said["error"] = report["error"]
                self.reports.append(said)
