"""ConsumerGroupHeartbeat over TCP: a member of a consumer group with the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.coordinator_link import CoordinatorLink
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse

JOIN = ConsumerGroupHeartbeat(
    "g", "m", 0, rebalance_timeout_ms=60_000, topics=("t",), owned=(), rack="r", assignor="range"
)


@asynccontextmanager
async def coordinator() -> AsyncIterator[CoordinatorLink]:
    """The emulator's coordinator; its topic t has two partitions."""
    server = Server(make_broker({}, {"t": 2}), lambda *_: None, lambda *_: None)
    endpoint = await server.start("127.0.0.1", 0)
    cluster = ClusterClient([endpoint], "c", 5_000)
    running = asyncio.Event()
    running.set()
    link = CoordinatorLink(cluster, "g", 100, running)
    try:
        assert await link.find() is Error.NONE
        yield link
    finally:
        await link.close()
        cluster.close()
        await server.stop()


async def ask(link: CoordinatorLink, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatResponse:
    response = await link.ask(request, 5_000)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def test_a_member_joins_acknowledges_and_leaves() -> None:
    async def scenario() -> None:
        async with coordinator() as link:
            joined = await ask(link, JOIN)
            assert (joined.error, joined.member_id, joined.member_epoch) == (Error.NONE, "m", 2)
            assert joined.heartbeat_interval_ms == 5_000
            assert joined.assignment is not None
            assert list(joined.assignment.values()) == [(0, 1)]
            owned: tuple[tuple[UUID, tuple[int, ...]], ...] = tuple(joined.assignment.items())
            kept = await ask(link, ConsumerGroupHeartbeat("g", "m", 2, owned=owned))
            assert (kept.error, kept.member_epoch, kept.assignment) == (Error.NONE, 2, None)
            left = await ask(link, ConsumerGroupHeartbeat("g", "m", -1, topics=(), owned=()))
            assert (left.error, left.member_epoch) == (Error.NONE, -1)

    asyncio.run(scenario())


def test_a_member_subscribes_by_a_regular_expression() -> None:
    async def scenario() -> None:
        async with coordinator() as link:
            join = JOIN._replace(topics=(), regex="t.*", group_instance_id="i")
            assert (await ask(link, join)).error is Error.NONE
            refused = await ask(link, join._replace(member_id="o", group_instance_id=None, regex="("))
            assert refused.error is Error.INVALID_REGULAR_EXPRESSION
            assert refused.error_message

    asyncio.run(scenario())
