"""Real time, in the microseconds since a scenario began."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

#: Starts a task of the run: an exception in it ends the run.
Spawn = Callable[[Coroutine[Any, Any, None]], object]


class RealClock:
    """The clock of a scenario on an event loop."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()

    @property
    def now_us(self) -> int:
        return int((self._loop.time() - self._began_s) * 1_000_000)

    def at(self, time_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action(*arguments)`` at ``time_us``, or soon if that has passed."""
        self.after(max(0, time_us - self.now_us), action, *arguments)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        self._spawn(self._later(delay_us, action, arguments))

    async def _later(self, delay_us: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        await asyncio.sleep(delay_us / 1_000_000)
        action(*arguments)
