"""Worker processes whose start is interrupted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from groupstorm.storms.live.real_clients.processes import WorkerPool

COUNT = 3


def children() -> set[str]:
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


async def test_no_process_outlives_a_pool_whose_start_is_cancelled() -> None:
    """The start is cancelled as soon as the processes exist, while asyncio connects their pipes."""
    tasks: list[asyncio.Task[Any]] = []

    def spawn(work: Coroutine[Any, Any, Any]) -> None:
        tasks.append(asyncio.ensure_future(work))

    before = children()
    pool = WorkerPool("the worker", [sys.executable, "-c", "import signal; signal.pause()"], 1, spawn)
    preparing = asyncio.ensure_future(pool.prepare(COUNT))
    async with asyncio.timeout(60):
        while len(children() - before) < COUNT:
            await asyncio.sleep(0)
        preparing.cancel()
        await asyncio.wait([preparing])
        await pool.stop()
    assert preparing.cancelled()
    assert children() == before
    await asyncio.gather(*tasks)
