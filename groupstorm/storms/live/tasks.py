"""The tasks of a run in real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from groupstorm.storms.live.clock import Spawn


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
