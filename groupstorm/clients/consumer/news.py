"""Several tasks wait for something to change."""

from __future__ import annotations

import asyncio


class News:
    """`wait` returns at the next `tell`; whoever waits looks first whether there is anything to wait for."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        await self._event.wait()
