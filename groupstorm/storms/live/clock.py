"""Real time: the microseconds since a scenario began, and the tasks of its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def tasks() -> AsyncIterator[Spawn]:
    """Tasks that end with the context; an exception in one of them ends all.

    What is cancelled at the end may want to begin something, such as the restart of a process: it may not.
    """
    running: set[asyncio.Task[None]] = set()
    ended = False
    try:
        async with asyncio.TaskGroup() as group:

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                if ended:
                    work.close()
                    return
                task = group.create_task(work)
                running.add(task)
                task.add_done_callback(running.discard)

            yield spawn
            ended = True
            for task in tuple(running):
                task.cancel()
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
