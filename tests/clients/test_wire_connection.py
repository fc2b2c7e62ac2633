"""A connection to brokers that misbehave: late, missing, unsolicited and invalid responses."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import pytest

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.shell import Server
from groupstorm.clients.brokers.jvm import held_ports
from groupstorm.clients.wire.admin import broker_options
from groupstorm.clients.wire.cluster import FIND_COORDINATOR, ClusterClient
from groupstorm.clients.wire.connection import (
    MAX_RESPONSE_BYTES,
    BrokerConnection,
    ClientApi,
    ConnectionLost,
    RequestTypes,
)
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.protocol.codec import encoder, response_types
from groupstorm.protocol.endpoints import Endpoint

LOOPBACK = "127.0.0.1"
API_VERSIONS = 18
PATIENT_MS = 60_000

Broker = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Broker) -> AsyncIterator[Endpoint]:
    """A broker that runs ``serve`` on each connection and closes when the context ends."""
    served: list[asyncio.StreamWriter] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionResetError):  # the client may go first
            await serve(reader, writer)

    server = await asyncio.start_server(noted, LOOPBACK, 0)
    try:
        yield Endpoint(LOOPBACK, server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for writer in served:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in served), return_exceptions=True)


@asynccontextmanager
async def emulator() -> AsyncIterator[Endpoint]:
    server = Server(make_broker({}, {"t": 2, "u": 1}), lambda *_: None, lambda *_: None)
    try:
        yield await server.start(LOOPBACK, 0)
    finally:
        await server.stop()


def find(types: RequestTypes) -> Any:
    return types.make(types.root.__name__, key_type=0, coordinator_keys=("g",))


async def ask(connection: BrokerConnection, timeout_ms: int = PATIENT_MS) -> Any:
    return await connection.ask(FIND_COORDINATOR, FIND_COORDINATOR.highest, find, timeout_ms)


async def request(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(length)


def correlation_id(frame: bytes) -> bytes:
    return frame[4:8]


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def versions(served: dict[int, tuple[int, int]], version: int = 3, error: Error = Error.NONE) -> bytes:
    """The body of an ApiVersions response."""
    types = response_types(API_VERSIONS, version)
    keys = tuple(
        types.make("ApiVersion", api_key=key, min_version=least, max_version=most)
        for key, (least, most) in served.items()
    )
    return b"".join(encoder(types.root)(types.response(error_code=error, api_keys=keys)))


def answering(*after_versions: Callable[[bytes], bytes]) -> Broker:
    """A broker that serves FindCoordinator and makes each response with the next function."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await request(reader)
        writer.write(framed(correlation_id(asked) + versions({FIND_COORDINATOR.key: (0, 6)})))
        for answer in after_versions:
            writer.write(answer(await request(reader)))
        await reader.read()  # until the client goes

    return serve


async def test_requests_sent_together_are_answered_in_their_order() -> None:
    async with emulator() as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        answers = await asyncio.gather(*(ask(connection) for _ in range(20)))
        assert {answer.coordinators[0].port for answer in answers} == {endpoint.port}
        connection.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda _: struct.pack(">i", MAX_RESPONSE_BYTES + 1), "104857601 bytes was announced"),
        (lambda _: struct.pack(">i", -1), "-1 bytes was announced"),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "was announced"),
        (lambda _: framed(b"\x00\x00\x77\x77\x00"), "response 30583 came where 1 was due"),
        (lambda asked: framed(correlation_id(asked) + b"\x00\x00\x00"), "too early"),
        (
            lambda asked: framed(correlation_id(asked) + b"\x00" + bytes(4) + b"\xff\xff\xff\xff\x0f"),
            "elements",
        ),
        (lambda _: framed(b""), "too early"),
    ],
    ids=["longer than allowed", "negative", "http", "other request", "cut off", "long array", "empty"],
)
async def test_invalid_responses_close_the_connection(answer: Callable[[bytes], bytes], why: str) -> None:
    async with listening(answering(answer)) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        with pytest.raises(ConnectionLost, match=why):
            await ask(connection)
        with pytest.raises(ConnectionLost):
            await ask(connection)


async def test_unsolicited_response_closes_the_connection() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await request(reader)
        writer.write(framed(correlation_id(asked) + versions({FIND_COORDINATOR.key: (0, 6)})))
        writer.write(framed(b"\x00\x00\x00\x01\x00"))
        await reader.read()

    async with listening(serve) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        lost = asyncio.Event()
        connection.on_lost = lambda _: lost.set()
        await lost.wait()
        with pytest.raises(ConnectionLost, match="a response came without a request"):
            await ask(connection)


async def test_responses_may_arrive_byte_by_byte() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await request(reader)
        for byte in framed(correlation_id(asked) + versions({FIND_COORDINATOR.key: (0, 6)})):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    async with listening(serve) as endpoint:
        (await BrokerConnection.open(endpoint, "c", PATIENT_MS)).abort()


async def test_late_response_fails_every_request_of_the_connection() -> None:
    async with listening(answering()) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        patient = asyncio.create_task(ask(connection))
        with pytest.raises(ConnectionLost, match="no response within 30 ms"):
            await ask(connection, timeout_ms=30)
        with pytest.raises(ConnectionLost):
            await patient


async def test_broker_that_closes_fails_waiting_requests() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await request(reader)
        writer.write(framed(correlation_id(asked) + versions({FIND_COORDINATOR.key: (0, 6)})))
        await request(reader)
        writer.close()

    async with listening(serve) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        with pytest.raises(ConnectionLost, match="the broker closed the connection"):
            await ask(connection)


async def test_cancelled_request_does_not_shift_the_responses() -> None:
    def coordinator(port: int) -> Callable[[bytes], bytes]:
        types = response_types(FIND_COORDINATOR.key, 6)
        found = types.make(
            "Coordinator",
            key="g",
            node_id=1,
            host=LOOPBACK,
            port=port,
            error_code=Error.NONE,
            error_message="",
        )
        body = b"".join(encoder(types.root)(types.response(coordinators=(found,))))
        return lambda asked: framed(correlation_id(asked) + b"\x00" + body)

    async with listening(answering(coordinator(1), coordinator(2))) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        impatient = asyncio.create_task(ask(connection))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await ask(connection)).coordinators[0].port == 2
        connection.close()


async def test_connecting_without_a_listener_fails() -> None:
    with held_ports(1) as (port,), pytest.raises(ConnectionLost, match=f"{LOOPBACK}:{port}: "):
        await BrokerConnection.open(Endpoint(LOOPBACK, port), "c", PATIENT_MS)


async def test_silent_broker_times_out() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(serve) as endpoint:
        with pytest.raises(ConnectionLost, match="no response"):
            await BrokerConnection.open(endpoint, "c", 30)


async def test_a_silent_cluster_is_not_one_without_brokers() -> None:
    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as endpoint:
        cluster = ClusterClient((endpoint,), "c", request_timeout_ms=50)
        with pytest.raises(ConnectionLost, match="no response in time"):
            await broker_options(cluster, ["group.max.size"])


async def test_broker_with_an_older_api_versions_is_understood() -> None:
    """It answers in version 0, whatever version was requested (KIP-511)."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await request(reader)
        body = versions({API_VERSIONS: (0, 2)}, version=0, error=Error.UNSUPPORTED_VERSION)
        writer.write(framed(correlation_id(asked) + body))
        await reader.read()

    async with listening(serve) as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        with pytest.raises(InputError, match="FindCoordinator is needed in one of the versions 4 to 6"):
            await ask(connection)
        connection.abort()


async def test_no_common_version_is_a_one_line_error() -> None:
    async with emulator() as endpoint:
        connection = await BrokerConnection.open(endpoint, "c", PATIENT_MS)
        with pytest.raises(InputError, match="versions 90 to 91, and it serves it in versions 0 to 6"):
            await connection.ask(
                ClientApi(FIND_COORDINATOR.key, "FindCoordinator", 90, 91), 91, find, PATIENT_MS
            )
        connection.abort()


async def test_cluster_asks_the_next_broker_if_one_does_not_answer() -> None:
    with held_ports(1) as (port,):
        async with emulator() as endpoint:
            cluster = ClusterClient([Endpoint(LOOPBACK, port), endpoint], "c", PATIENT_MS)
            assert (await cluster.find_coordinator("g")).endpoint == endpoint
            await cluster.refresh(["t"])
            assert cluster.topics == {"t": 2}
            cluster.close()


async def test_cluster_without_a_broker_raises() -> None:
    async with listening(answering()) as gone:
        pass
    for bootstrap in ([gone], []):
        with pytest.raises(ConnectionLost):
            await ClusterClient(bootstrap, "c", PATIENT_MS).find_coordinator("g")


async def test_topics_are_asked_for_by_name_or_by_id_and_one_that_is_gone_has_no_name() -> None:
    """KIP-516."""
    async with emulator() as endpoint:
        cluster = ClusterClient([endpoint], "c", PATIENT_MS)
        await cluster.refresh(["t", "u"])
        ids = {name: topic_id for topic_id, name in cluster.topic_names.items()}
        assert set(ids) == {"t", "u"}
        await cluster.refresh((), [ids["t"]])
        assert (cluster.topics, cluster.topic_names) == ({"t": 2}, {ids["t"]: "t"})
        await cluster.refresh((), [UUID(int=7)])
        assert (cluster.topics, cluster.topic_names) == ({}, {})
        cluster.close()
