"""Many clients of one broker, good and bad ones, over real sockets."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.broker import wire
from tests.broker.wire import framed, milliseconds, request

Address = tuple[str, int]
_AT_ONCE = 200
_BIG_ANSWERS = 40


@dataclass
class Client:
    """One connection. The stream's reader stops reading the socket beyond ``limit`` bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def connected(cls, address: Address, limit: int = 2**16) -> Client:
        return cls(*await asyncio.open_connection(*address, limit=limit))

    async def ask(self, api_key: int, version: int, **values: Any) -> Any:
        self.writer.write(framed(request(api_key, version, 1, **values)))
        (length,) = struct.unpack(">i", await self.reader.readexactly(4))
        return wire.parse_response(api_key, version, await self.reader.readexactly(length))[1]

    async def is_closed_by_server(self) -> bool:
        with suppress(ConnectionError):
            return await self.reader.read(1) == b""
        return True


async def connect(address: Address, count: int, limit: int = 2**16) -> list[Client]:
    """So many connections, some hundreds at a time."""
    clients: list[Client] = []
    while len(clients) < count:
        more = min(_AT_ONCE, count - len(clients))
        clients += await asyncio.gather(*(Client.connected(address, limit) for _ in range(more)))
    return clients


async def ask_meanwhile(client: Client, meanwhile: Awaitable[object]) -> None:
    """A client asks for ApiVersions, some hundred times, while something else goes on."""
    other = asyncio.ensure_future(meanwhile)
    asked = 0
    while not other.done() or asked < _AT_ONCE:
        await client.ask(wire.API_VERSIONS, 0)
        asked += 1
        await asyncio.sleep(0.001)
    await other


def rss_mib(process: int) -> float:
    """The memory that a process has in use."""
    pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    return pages * 4096 / 2**20


# bad clients


async def ask_and_never_read(clients: Sequence[Client], partition_bytes: int) -> None:
    """Each asks for many large answers and reads none: a stream stops reading at twice its limit."""
    limits = {"partition_max_bytes": partition_bytes, "current_leader_epoch": -1}
    partition = {"partition": 0, "fetch_offset": 0, **limits}
    topic = {"topic": "orders", "partitions": (partition,)}
    fields: dict[str, Any] = {"max_wait": milliseconds(0), "min_bytes": 0, "max_bytes": partition_bytes}
    session: dict[str, Any] = {"isolation_level": 0, "session_id": 0, "session_epoch": -1, "rack_id": ""}
    asked = framed(request(wire.FETCH, 11, 1, topics=(topic,), **fields, **session))
    for client in clients:
        client.writer.write(asked * _BIG_ANSWERS)
    await asyncio.sleep(2.0)


async def announce(clients: Sequence[Client], announced: int, sent: int) -> None:
    """Each announces a request of so many bytes and sends only the first ones."""
    for client in clients:
        client.writer.write(struct.pack(">i", announced) + bytes(sent))
    for client in clients:
        with suppress(ConnectionError):
            await client.writer.drain()
    await asyncio.sleep(1.0)


async def fill(client: Client, batches: int, batch_bytes: int) -> None:
    """Records for the large answers."""
    for _ in range(batches):
        data = {"index": 0, "records": wire.batch([b"x" * batch_bytes])}
        topic = {"name": "orders", "partition_data": (data,)}
        await client.ask(wire.PRODUCE, 9, transactional_id=None, acks=-1, topic_data=(topic,))


async def make_groups(client: Client, count: int) -> None:
    """Each group has one committed offset."""
    for number in range(count):
        partition = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
        topic = {"name": "orders", "partitions": (partition,)}
        own = {"group_id": f"group-{number}", "generation_id_or_member_epoch": -1, "member_id": ""}
        await client.ask(wire.OFFSET_COMMIT, 8, topics=(topic,), **own)


async def make_topics(client: Client, count: int, at_once: int = 100) -> None:
    for first in range(0, count, at_once):
        topics = tuple(
            {"name": f"topic-{number}", "num_partitions": 1, "replication_factor": 1}
            for number in range(first, min(first + at_once, count))
        )
        await client.ask(wire.CREATE_TOPICS, 5, topics=topics, timeout=milliseconds(1000))
