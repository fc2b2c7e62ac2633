"""The search for positions runs beside the membership: a consumer that joins again does not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from groupstorm.clients.wire.offsets import OffsetLookup
from groupstorm.clients.wire.positions import Positions
from groupstorm.coordinator.errors import Error

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class PositionSearch:
    """Runs one `OffsetLookup` at a time. ``on_found`` gets NONE, or the error that poll() has to throw."""

    def __init__(
        self, lookup: OffsetLookup, positions: Positions, spawn: Spawn, on_found: Callable[[Error], None]
    ) -> None:
        self._lookup = lookup
        self._positions = positions
        self._spawn = spawn
        self._on_found = on_found
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Search, if an owned partition has no position and no search is running."""
        if self._task is None and self._positions.missing():
            self._task = self._spawn(self._run())

    def stop(self) -> None:
        """An assignment makes the running search obsolete."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    async def _run(self) -> None:
        error = await self._lookup.find()
        self._task = None
        self._on_found(error)
