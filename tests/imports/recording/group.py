"""A group of members that the harness starts, stops and kills, and waits for; it notes all that happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.imports.recording.members import CLOSED, FAILED, RESUMED, MemberProcess, RecordingFailed

PARTITIONS = frozenset(f"orders-{number}" for number in range(6))

#: The group counts as settled if nobody's partitions have changed for so long.
_QUIET_S = 1.5
_TIMEOUT_S = 60.0
_LOOK_S = 0.05
#: After so long a member whose instance another process has counts as out, whatever it says.
_FENCED_S = 8.0

#: The order that starts a member: its name, its instance or None.
MakeOrder = Callable[[str, str | None], Mapping[str, Any]]


class RecordedGroup:
    """``instances``: the static ids of the members that have one.

    ``actions``: what the harness did, and when. ``reports``: what the members said, in the order of time.
    """

    def __init__(
        self,
        name: str,
        instances: Mapping[str, str],
        command: Sequence[str],
        make_order: MakeOrder,
        folder: Path,
        fail_over: Callable[[], Awaitable[None]],
    ) -> None:
        self.name = name
        self.actions: list[Mapping[str, Any]] = []
        self._instances = instances
        self._command = command
        self._make_order = make_order
        self._folder = folder
        self._fail_over = fail_over
        self._living: dict[str, MemberProcess] = {}
        self._all: list[MemberProcess] = []

    @property
    def living(self) -> list[str]:
        """The members that were started and have neither been stopped nor killed, nor fenced."""
        return [*self._living]

    @property
    def reports(self) -> list[Mapping[str, Any]]:
        return sorted((one for member in self._all for one in member.reports), key=lambda one: one["time_ms"])

    async def start(self, *names: str) -> None:
        """Start members, one after the other; the log of one goes on if it had one before."""
        for member in [await self._launched(name) for name in names]:
            self._start(member)

    async def stop(self, *names: str) -> None:
        """Close members' consumers, one after the other, and end their processes."""
        for name in names:
            await self._close(name)

    async def restart(self, name: str) -> None:
        """A new process takes the place of a member's as soon as the old one has closed its consumer."""
        member = await self._launched(name)
        await self._close(name)
        self._start(member)

    async def kill(self, name: str) -> None:
        self._note("kill", name)
        await self._living.pop(name).kill()

    async def busy(self, name: str, for_s: float) -> None:
        """A member does not poll for so long. Returns when it polls again."""
        member = self._living[name]
        self._note("busy", name, for_s=for_s)
        member.busy(for_s)
        await self._until(lambda: member.has_reported(RESUMED), f"{name} is still busy")

    async def twin(self, name: str, of: str) -> None:
        """A second process comes with the instance of a member: one of both fails. If its library does not
        tell that, one is killed after a while: the second if it gets no partitions, else the first."""
        first, second = self._living.pop(of), await self._launched(name)
        self._start(second, of=of)
        del self._living[name]
        deadline_s = time.monotonic() + _FENCED_S
        while not (first.has_reported(FAILED) or second.has_reported(FAILED)):
            if time.monotonic() > deadline_s:
                break
            await asyncio.sleep(_LOOK_S)
        is_second = second.has_reported(FAILED) or not (first.has_reported(FAILED) or second.owned)
        out, left = (second, first) if is_second else (first, second)
        self._living[left.name] = left
        await out.kill()

    async def fail_over(self) -> None:
        """The coordinator moves to another broker."""
        self._note("fail-over", "")
        await self._fail_over()

    async def settled(self) -> None:
        """Wait until every partition has one owner, and nothing has changed for a while."""
        await self._until(self._is_settled, f"{self.name} has not settled")

    async def end(self) -> None:
        for member in self._all:
            await member.kill()

    async def _launched(self, name: str) -> MemberProcess:
        member = MemberProcess(name, self._command, self._folder / f"{name}.log")
        self._all.append(member)
        await member.launch()
        return member

    def _start(self, member: MemberProcess, **about: str) -> None:
        instance = self._instances.get(member.name)
        self._living[member.name] = member
        self._note("start", member.name, **({} if instance is None else {"instance": instance}), **about)
        member.start(self._make_order(member.name, instance))

    async def _close(self, name: str) -> None:
        member = self._living.pop(name)
        self._note("stop", name)
        member.close()
        await self._until(lambda: member.has_reported(CLOSED), f"{name} has not closed")
        await member.kill()

    def _note(self, do: str, name: str, **about: Any) -> None:
        self.actions.append({"time_ms": time.time_ns() // 1_000_000, "do": do, "member": name, **about})

    def _is_settled(self) -> bool:
        owned = [one for member in self._living.values() for one in member.owned]
        last_ms = max((member.reports[-1]["time_ms"] for member in self._all if member.reports), default=0)
        last_ms = max(last_ms, self.actions[-1]["time_ms"])
        quiet_s = time.time() - last_ms / 1000
        everybody = all(member.owned for member in self._living.values())
        return everybody and len(owned) == 6 and {*owned} == PARTITIONS and quiet_s >= _QUIET_S

    async def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline_s = time.monotonic() + _TIMEOUT_S
        while not condition():
            for member in self._living.values():
                if member.has_reported(FAILED):
                    raise RecordingFailed(f"{member.name} failed: {member.reports[-1]}")
            if time.monotonic() > deadline_s:
                owned = {member.name: sorted(member.owned) for member in self._living.values()}
                raise RecordingFailed(f"{otherwise} after {_TIMEOUT_S:.0f} s: {owned}")
            await asyncio.sleep(_LOOK_S)
