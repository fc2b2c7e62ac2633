"""The cost of a heartbeat to the broker: `groupstorm serve` beside Kafka's own broker, in one run.

    python -m benchmarks.server [--members 100] [--window 10] [--seconds 3] [--warm-up 15]

The members of one stable group, each on a connection of its own, each with several heartbeats under way
(pipelined). CPU microseconds of the broker's process per heartbeat, on asyncio's own event loop and, where it
is installed, on uvloop; Kafka's is warmed up first, since a young JVM costs many times as much.
"""

from __future__ import annotations

import argparse
import asyncio
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple, cast

from benchmarks.brokers import KAFKA, brokers, cpu_seconds
from groupstorm.assignors.userdata import Subscription, encode_subscription
from groupstorm.clients.brokers.contract import BrokerUnavailable, RunningBroker
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.requests import join_group, sync_group
from groupstorm.clients.wire.admin import await_coordinator
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import BrokerConnection
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import JoinGroup, JoinGroupResponse, SyncGroup, SyncGroupResponse
from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.endpoints import Endpoint

_HEARTBEAT, _VERSION = 12, 4
_GROUP = "benchmark"
_TIMEOUT_MS = 60_000
#: All members arrive within it, so that there is one round.
_OPTIONS = {"group.initial.rebalance.delay.ms": "1000"}
_SUBSCRIPTION = encode_subscription(Subscription((), None, (), -1, None), 3)
_HEADER_BYTES = 5  # correlation id and tagged fields


class Load(NamedTuple):
    heartbeats_per_s: float
    broker_us_each: float


class _Heartbeats(asyncio.Protocol):
    """One member's connection: as many new heartbeats as answers have come."""

    def __init__(self, frame: bytes, answer: bytes, window: int) -> None:
        self.answered = 0
        self._frame, self._answer, self._window = frame, answer, window
        self._pending = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not of that class
        self._transport.write(self._frame * self._window)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        count, rest = divmod(len(self._pending), len(self._answer))
        assert self._pending.startswith(self._answer * count), "a heartbeat was refused"
        self._pending = self._pending[-rest:] if rest else b""
        self.answered += count
        if self._transport is not None:
            self._transport.write(self._frame * count)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None


def _frame(generation: Generation) -> bytes:
    kind = request_type(_HEARTBEAT, _VERSION)
    message = kind(group_id=_GROUP, generation_id=generation.id, member_id=generation.member_id)
    header = struct.pack(">hhih", _HEARTBEAT, _VERSION, 1, 5) + b"bench" + b"\x00"
    payload = header + b"".join(encoder(kind)(message))
    return struct.pack(">i", len(payload)) + payload


def _answer() -> bytes:
    """To every heartbeat of a member: the correlation id, no throttling, no error."""
    kind = response_types(_HEARTBEAT, _VERSION).root
    payload = struct.pack(">i", 1) + b"\x00" + b"\x00\x00\x00\x00" + b"\x00\x00" + b"\x00"
    answer, _ = decoder(kind)(payload, _HEADER_BYTES)
    assert Error(answer.error_code) is Error.NONE
    return struct.pack(">i", len(payload)) + payload


async def _member(connection: BrokerConnection, number: int) -> Generation:
    """Through one round of the group."""
    config = ConsumerConfig(_GROUP, f"member-{number}", ())
    member_id = ""
    while True:
        request = join_group(config, Generation(member_id=member_id), (("range", _SUBSCRIPTION),), "")
        joined = await _ask(connection, request)
        assert isinstance(joined, JoinGroupResponse)
        if joined.error is Error.NONE:
            break
        assert joined.error is Error.MEMBER_ID_REQUIRED, joined.error
        member_id = joined.member_id
    plan = tuple((member.member_id, b"") for member in joined.members)
    synced = await _ask(connection, sync_group(config, joined, plan))
    assert isinstance(synced, SyncGroupResponse)
    assert synced.error is Error.NONE, synced.error
    return Generation(joined.generation, joined.member_id)


async def _ask(connection: BrokerConnection, request: JoinGroup | SyncGroup) -> object:
    exchange = REQUEST_CODECS[type(request)]
    build = exchange.build(request)
    answer = await connection.ask(exchange.api, exchange.api.highest, build, _TIMEOUT_MS)
    return exchange.read(answer)


async def _form_group(endpoint: Endpoint, members: int) -> list[Generation]:
    cluster = ClusterClient((endpoint,), "benchmark", _TIMEOUT_MS)
    await await_coordinator(cluster, _GROUP)
    cluster.close()
    connections = [await BrokerConnection.open(endpoint, "benchmark", _TIMEOUT_MS) for _ in range(members)]
    formed = await asyncio.gather(*(_member(one, number) for number, one in enumerate(connections)))
    for connection in connections:
        connection.close()
    return formed


async def _beating(endpoint: Endpoint, generation: Generation, window: int) -> _Heartbeats:
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(
        lambda: _Heartbeats(_frame(generation), _answer(), window), endpoint.host, endpoint.port
    )
    return protocol


async def _load(broker: RunningBroker, formed: Sequence[Generation], window: int, seconds: float) -> Load:
    """Heartbeats for so long."""
    assert broker.pid is not None
    beating = [await _beating(broker.bootstrap[0], generation, window) for generation in formed]
    before = sum(protocol.answered for protocol in beating)
    before_s, begin_s = cpu_seconds(broker.pid), time.monotonic()
    await asyncio.sleep(seconds)
    elapsed_s, used_s = time.monotonic() - begin_s, cpu_seconds(broker.pid) - before_s
    answered = sum(protocol.answered for protocol in beating) - before
    for protocol in beating:
        protocol.close()
    return Load(answered / elapsed_s, used_s * 1e6 / answered)


async def measure(name: str, members: int, window: int, seconds: float, warm_up_s: float) -> Load:
    """Raises BrokerUnavailable."""
    async with brokers()[name](_OPTIONS) as broker:
        formed = await _form_group(broker.bootstrap[0], members)
        _ = await _load(broker, formed, window, warm_up_s if name == KAFKA else 1.0)
        return await _load(broker, formed, window, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--window", type=int, default=10, help="heartbeats under way on each connection")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--warm-up", type=float, default=15.0, help="seconds, for Kafka's JVM")
    given = parser.parse_args()
    print(f"{'broker':20}{'heartbeats/s':>14}{'broker CPU us/heartbeat':>26}{'to Kafka':>10}")
    kafka_us: float | None = None
    for name in brokers():
        try:
            load = asyncio.run(measure(name, given.members, given.window, given.seconds, given.warm_up))
        except BrokerUnavailable as missing:
            print(f"{name:20}not measured: {missing}", flush=True)
            continue
        kafka_us = load.broker_us_each if name == KAFKA else kafka_us
        ratio = "" if kafka_us is None else f"{load.broker_us_each / kafka_us:.1f}"
        print(f"{name:20}{load.heartbeats_per_s:>14,.0f}{load.broker_us_each:>26.1f}{ratio:>10}", flush=True)


if __name__ == "__main__":
    main()
