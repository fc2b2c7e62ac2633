"""Load: thousands of idle connections, a group of two thousand members."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import pytest

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.crowd.clients import Client, connect
from tests.broker.test_connections import is_serving
from tests.broker.wire import milliseconds

IDLE = 5_000
MEMBERS = 2_000
DEADLINE_S = 120.0

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def open_files() -> None:
    """Raise the limit: both ends of each connection are in this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * IDLE + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"raise the limit of open files to {wanted} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def test_others_are_served_beside_five_thousand_idle_connections() -> None:
    with EmbeddedBroker({}) as broker:
        idle = await connect((broker.host, broker.port), IDLE)
        one = await Client.connected((broker.host, broker.port))
        for _ in range(200):
            await one.ask(wire.API_VERSIONS, 0)
        assert is_serving(broker)
        for client in (*idle, one):
            client.writer.close()


async def test_two_thousand_members_form_one_group() -> None:
    options = {"group.initial.rebalance.delay.ms": "3000", "group.max.session.timeout.ms": "600000"}
    with EmbeddedBroker(options) as broker:
        clients = await connect((broker.host, broker.port), MEMBERS)
        async with asyncio.timeout(DEADLINE_S):
            answers = await asyncio.gather(*(join(client) for client in clients))
            assert {one.error_code for one in answers} == {Error.NONE}
            assert {one.generation_id for one in answers} == {1}
            plan = next(one.members for one in answers if one.members)
            assert len(plan) == MEMBERS
            shares = await asyncio.gather(
                *(sync(client, one) for client, one in zip(clients, answers, strict=True))
            )
            assert [share.assignment for share in shares] == [one.member_id.encode() for one in answers]
            beats = await asyncio.gather(
                *(beat(client, one) for client, one in zip(clients, answers, strict=True))
            )
        assert {one.error_code for one in beats} == {Error.NONE}
        for client in clients:
            client.writer.close()


async def join(client: Client) -> Any:
    protocol = {"name": "range", "metadata": b"m" * 200}
    return await client.ask(
        wire.JOIN_GROUP,
        3,
        group_id="g",
        session_timeout=milliseconds(300_000),
        rebalance_timeout=milliseconds(300_000),
        member_id="",
        protocol_type="consumer",
        protocols=(protocol,),
    )


async def sync(client: Client, joined: Any) -> Any:
    """The leader assigns to every member the member's own id."""
    plan = tuple({"member_id": one.member_id, "assignment": one.member_id.encode()} for one in joined.members)
    own = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    return await client.ask(wire.SYNC_GROUP, 3, assignments=plan, **own)


async def beat(client: Client, joined: Any) -> Any:
    own = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    return await client.ask(wire.HEARTBEAT, 0, **own)
