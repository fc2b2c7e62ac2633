"""The standard output of a process, line by line, into a log and to a listener.

The pipe is our own: a process counts as ended when it ends, even if a child of its holds the pipe open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

#: The longest line that is read as one.
_LINE_BYTES = 2**20
#: What a process has written is there when it has ended; only a child that lives on keeps the pipe open.
_LAST_LINES_S = 5.0


class LinePipe:
    """Give ``write_end`` to a process, then call `follow`, which closes it here."""

    def __init__(self, log: Path, on_line: Callable[[bytes], None]) -> None:
        self._log = log
        self._on_line = on_line
        self._read_end, self.write_end = os.pipe()
        self._reading: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Read from now on."""
        os.close(self.write_end)
        self._reading = asyncio.get_running_loop().create_task(self._read())

    def close(self) -> None:
        """Nobody has got the write end."""
        os.close(self.write_end)
        os.close(self._read_end)

    async def ended(self) -> None:
        """The process has ended: wait for its last lines."""
        assert self._reading is not None
        await asyncio.wait([self._reading], timeout=_LAST_LINES_S)
        if not self._reading.done():
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.result()

    async def _read(self) -> None:
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self._read_end, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        try:
            with self._log.open("ab", buffering=0) as log:
                while True:
                    try:
                        line = await reader.readline()
                    except ValueError:  # longer than a line about a record is: the reader has dropped it
                        continue
                    if not line:
                        return
                    log.write(line)
                    self._on_line(line)
        finally:
            transport.close()
