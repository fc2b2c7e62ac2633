"""Bad clients cost a broker no more than one answer each, and the others are served meanwhile."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Iterator

import pytest

from tests.broker.crowd import clients
from tests.broker.crowd.clients import Address, Client, connect
from tests.broker.test_serve import DEADLINE_S, serving

pytestmark = pytest.mark.slow
MIB = 2**20
IDLE = 5_000


@pytest.fixture
def broker() -> Iterator[tuple[int, Address]]:
    """The process and its address. It and this one may have as many open files as there are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with serving("--topic", "orders:1") as (process, address):
        assert process.stderr is not None
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process.pid, address


async def test_a_client_that_does_not_read_costs_one_answer(broker: tuple[int, Address]) -> None:
    process, address = broker
    healthy = await Client.connected(address)
    await clients.fill(healthy, 4, MIB - 1000)
    crowd = await connect(address, 30)
    before_mib = clients.rss_mib(process)
    asked = clients.ask_and_never_read(crowd, 4 * MIB)
    async with asyncio.timeout(DEADLINE_S):  # a broker that waits for a bad client would take for ever
        await clients.ask_meanwhile(healthy, asked)
    # each has asked for 160 MB
    assert clients.rss_mib(process) - before_mib < 30 * 4 * 2
    for one in (*crowd, healthy):
        one.writer.close()


async def test_announced_bytes_cost_nothing_before_they_come(broker: tuple[int, Address]) -> None:
    process, address = broker
    crowd, refused = await connect(address, 100), await connect(address, 100)
    before_mib = clients.rss_mib(process)
    await clients.announce(crowd, 64_000_000, 10)
    await clients.announce(refused, 2**31 - 1, 10)
    assert clients.rss_mib(process) - before_mib < 20
    assert all(await asyncio.gather(*(one.is_closed_by_server() for one in refused)))
    for one in (*crowd, *refused):
        one.writer.close()


async def test_others_are_served_beside_five_thousand_idle_connections(broker: tuple[int, Address]) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < IDLE + 500:
        pytest.skip(f"raise the limit of open files to {IDLE + 500} (ulimit -Hn)")
    async with asyncio.timeout(DEADLINE_S):
        crowd = await connect(broker[1], IDLE)
        await clients.ask_meanwhile(await Client.connected(broker[1]), asyncio.sleep(0))
    for one in crowd:
        one.writer.close()


async def test_many_groups_and_topics(broker: tuple[int, Address]) -> None:
    process, address = broker
    healthy, other = await connect(address, 2)
    before_mib = clients.rss_mib(process)

    async def fill() -> None:
        await clients.make_groups(other, 500)
        await clients.make_topics(other, 5_000)

    async with asyncio.timeout(DEADLINE_S):
        await clients.ask_meanwhile(healthy, fill())
    assert clients.rss_mib(process) - before_mib < 50
    for one in (healthy, other):
        one.writer.close()
