"""How many generations a new classic group needs until all its members are in one, and how long it takes:
`python -m tests.conformance.settling` measures the emulator, with and without append latency, beside Kafka.

Members send raw requests, the first one of each a little after that of the one before, and join again as soon
as they are told to: without `group.initial.rebalance.delay.ms` a quick coordinator completes more and smaller
rounds. The emulator runs on a thread beside the members.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.clients.brokers import JVM, open_broker, read_kind
from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.wire.admin import await_coordinator
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import BrokerConnection, ClientApi, RequestTypes
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.endpoints import Endpoint
from tests.conformance.raw.normal import build

MEMBERS, ROUNDS = 50, 5
#: The time in which all members send their first request.
SPREADS_MS = (0, 100)
#: Append latencies of the emulator, in milliseconds.
LATENCIES_MS = (0, 2, 5, 10)
_SETTING = "groupstorm.append.latency.ms"
_JOIN, _SYNC, _HEARTBEAT = (
    ClientApi(11, "JoinGroup", 9, 9),
    ClientApi(14, "SyncGroup", 5, 5),
    ClientApi(12, "Heartbeat", 4, 4),
)
_TIMEOUT_MS = 60_000
#: How long a group may take to settle.
_DEADLINE_S = 300.0
_HEARTBEAT_S = 0.02


class Settled(NamedTuple):
    """One group: the generation in which all members have assignments, the size of the first, the time."""

    generations: int
    first_size: int
    seconds: float


class _Group:
    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.first_size = 0
        #: Generation -> how many members have their assignments in it.
        self._synced: Counter[int] = Counter()
        #: The generation in which all members have one, and when that was.
        self.settled_at: tuple[int, float] | None = None

    def synced(self, generation: int) -> None:
        """A member has its assignment."""
        self._synced[generation] += 1
        if self._synced[generation] == self.size:
            self.settled_at = generation, time.monotonic()


async def measure(bootstrap: Sequence[Endpoint], name: str, members: int, spread_ms: int) -> Settled:
    """One new group of so many members, until all of them are in one generation."""
    cluster = ClusterClient(bootstrap, "settling", _TIMEOUT_MS)
    try:
        await await_coordinator(cluster, name)
        endpoint = (await cluster.find_coordinator(name)).endpoint
    finally:
        cluster.close()
    group = _Group(name, members)
    connections = [await BrokerConnection.open(endpoint, "settling", _TIMEOUT_MS) for _ in range(members)]
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(_DEADLINE_S), asyncio.TaskGroup() as tasks:
            for number, connection in enumerate(connections):
                later_s = spread_ms / 1000 * number / members
                tasks.create_task(_take_part(connection, group, later_s))
    finally:
        for connection in connections:
            connection.abort()
    assert group.settled_at is not None
    generation, settled_s = group.settled_at
    return Settled(generation, group.first_size, settled_s - began_s)


async def _take_part(connection: BrokerConnection, group: _Group, later_s: float) -> None:
    """Join, sync and send heartbeats until the group is complete; each rebalance is joined at once."""
    await asyncio.sleep(later_s)
    member_id = ""
    while group.settled_at is None:
        joined = await _ask(
            connection,
            _JOIN,
            group_id=group.name,
            session_timeout=30_000,
            rebalance_timeout=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )
        member_id = joined.member_id or member_id
        if joined.error_code != Error.NONE:
            continue
        here = {"group_id": group.name, "member_id": member_id, "generation_id": joined.generation_id}
        leads = joined.leader == member_id
        if leads and joined.generation_id == 1:
            group.first_size = len(joined.members)
        plan = [{"member_id": one.member_id, "assignment": b"x"} for one in joined.members] if leads else []
        answer = await _ask(
            connection, _SYNC, **here, protocol_type="consumer", protocol_name="range", assignments=plan
        )
        if answer.error_code == Error.NONE:
            group.synced(joined.generation_id)
        while answer.error_code == Error.NONE and group.settled_at is None:
            await asyncio.sleep(_HEARTBEAT_S)
            answer = await _ask(connection, _HEARTBEAT, **here)


async def _ask(connection: BrokerConnection, api: ClientApi, **fields: Any) -> Any:
    def make(types: RequestTypes) -> Any:
        return build(types.root, fields)

    return await connection.ask(api, api.highest, make, _TIMEOUT_MS)


@asynccontextmanager
async def _brokers() -> AsyncIterator[dict[str, Sequence[Endpoint]]]:
    """The emulator with each latency, and Kafka, all running side by side."""
    delay = {"group.initial.rebalance.delay.ms": "0"}
    async with AsyncExitStack() as stack:
        found: dict[str, Sequence[Endpoint]] = {}
        for latency_ms in LATENCIES_MS:
            settings = delay | {_SETTING: str(latency_ms)}
            running = stack.enter_context(EmbeddedBroker(settings))
            host, _, port = running.address.rpartition(":")
            found[f"emulator, latency {latency_ms} ms"] = (Endpoint(host, int(port)),)
        kafka = await stack.enter_async_context(open_broker(read_kind(JVM), delay, lambda _: None))
        found["Kafka 4.3.1"] = kafka.bootstrap
        yield found


async def _measure_all(members: int) -> list[tuple[str, int, list[Settled]]]:
    """Brokers take turns, so that a busy moment of the machine meets all of them."""
    async with _brokers() as brokers:
        for bootstrap in brokers.values():
            for one in range(2):
                await measure(bootstrap, f"warming-up-{one}", members, 0)
        rows: list[tuple[str, int, list[Settled]]] = [
            (what, spread_ms, []) for spread_ms in SPREADS_MS for what in brokers
        ]
        for one in range(ROUNDS):
            for what, spread_ms, measured in rows:
                name = f"settling-{spread_ms}-{one}"
                measured.append(await measure(brokers[what], name, members, spread_ms))
        return rows


def _shown(what: str, spread_ms: int, measured: Sequence[Settled]) -> str:
    def span(values: Sequence[float], digits: int) -> str:
        ordered = sorted(values)
        middle = ordered[len(ordered) // 2]
        return f"{middle:.{digits}f} ({ordered[0]:.{digits}f} to {ordered[-1]:.{digits}f})"

    cells = [
        span([one.generations for one in measured], 0),
        span([one.first_size for one in measured], 0),
        span([one.seconds * 1000 for one in measured], 0),
    ]
    return f"| {spread_ms} ms | {what} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.settling", description=__doc__)
    parser.add_argument("--members", type=int, default=MEMBERS)
    options = parser.parse_args(arguments)
    try:
        rows = asyncio.run(_measure_all(options.members))
    except BrokerUnavailable as unavailable:
        print(unavailable, file=sys.stderr)
        return 2
    print("| members begin within | broker | generations | members of the first | milliseconds |")
    print("|---:|---|---:|---:|---:|")
    for row in rows:
        print(_shown(*row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
