"""Connections at the level of bytes: malformed requests, waiting requests, the order of responses."""

from __future__ import annotations

import socket
import struct
import time

import pytest

from groupstorm.broker.apis import APIS
from groupstorm.broker.embedded import EmbeddedBroker
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import join_fields
from tests.broker.conftest import INITIAL_DELAY_MS
from tests.broker.wire import RawClient, framed, milliseconds, request
from tests.waiting import wait_until


def join(group: str, correlation_id: int = 1) -> bytes:
    """JoinGroup 3: it needs no second request for a member id."""
    return framed(request(wire.JOIN_GROUP, 3, correlation_id, **join_fields(group)))


def api_versions(correlation_id: int = 1) -> bytes:
    return framed(request(wire.API_VERSIONS, 0, correlation_id))


def is_serving(broker: EmbeddedBroker) -> bool:
    with RawClient((broker.host, broker.port)) as other:
        return bool(other.ask(wire.API_VERSIONS, 0).error_code == Error.NONE)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP: a frame of 1.2 GB"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", id="TLS: a frame of 369 MB"),
        pytest.param(struct.pack(">i", -1), id="a negative length"),
        pytest.param(struct.pack(">i", 100_001), id="one byte more than socket.request.max.bytes"),
        pytest.param(struct.pack(">i", 0), id="an empty frame"),
        pytest.param(framed(b"\x00"), id="half an API key"),
        pytest.param(framed(b"\xff" * 40), id="no API key at all"),
        pytest.param(framed(struct.pack(">hhih", 999, 0, 1, -1)), id="an unknown API"),
        pytest.param(framed(struct.pack(">hhih", 4, 0, 1, -1)), id="an API of controllers"),
        pytest.param(framed(struct.pack(">hhih", 12, 99, 1, -1)), id="an unknown version"),
        pytest.param(framed(struct.pack(">hhih", 0, 2, 1, -1)), id="Produce 2, which is advertised only"),
        pytest.param(framed(struct.pack(">hhih", 12, 0, 1, 500)), id="a client id longer than the frame"),
        pytest.param(framed(struct.pack(">hhih", 12, 0, 1, -1) + b"\x00"), id="a body that ends too early"),
        pytest.param(
            framed(struct.pack(">hhih", 3, 12, 1, -1) + b"\x00" + b"\xff\xff\xff\xff\x0f"),
            id="an array of four billion topics",
        ),
    ],
)
def test_a_malformed_request_closes_its_connection_and_no_other(
    broker: EmbeddedBroker, client: RawClient, data: bytes
) -> None:
    client.send(data)
    assert client.is_closed_by_server()
    assert is_serving(broker)
    assert len(broker.closed) == 1


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: RawClient) -> None:
    client.send(framed(struct.pack(">hhih", 18, 99, 7, 3) + b"raw" + b"\x00\x04abc\x041.0\x00"))
    correlation_id, message = wire.parse_response(wire.API_VERSIONS, 0, client.frame())
    assert correlation_id == 7
    assert message.error_code == Error.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in message.api_keys] == [(18, 0, 5)]
    # the connection stays, so that the client can ask again
    assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE


def test_api_versions_3_has_response_header_0(client: RawClient) -> None:
    client.send(
        framed(request(wire.API_VERSIONS, 3, 7, client_software_name="a", client_software_version="1"))
    )
    frame = client.frame()
    # correlation id, then the error code at once: no tagged fields of a header in between
    assert frame[:6] == struct.pack(">ih", 7, 0)


def test_api_versions_3_refuses_software_names_that_are_none(client: RawClient) -> None:
    answer = client.ask(wire.API_VERSIONS, 3, client_software_name="-bad-", client_software_version="1")
    assert answer.error_code == Error.INVALID_REQUEST


def test_api_versions_lists_what_is_served_and_produce_from_0(client: RawClient) -> None:
    ranges = {
        one.api_key: (one.min_version, one.max_version) for one in client.ask(wire.API_VERSIONS, 2).api_keys
    }
    assert set(ranges) == set(APIS)
    assert ranges[wire.PRODUCE][0] == 0
    assert ranges[wire.JOIN_GROUP] == (0, 9)


def test_frames_may_come_byte_by_byte(client: RawClient) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in api_versions(5):
        client.send(bytes([byte]))
    assert client.answer(wire.API_VERSIONS, 0, 5).error_code == Error.NONE


def test_several_requests_in_one_packet_are_answered_in_their_order(client: RawClient) -> None:
    client.send(b"".join(api_versions(number) for number in range(-1, 49)))
    for number in range(-1, 49):
        client.answer(wire.API_VERSIONS, 0, number)


def test_requests_in_front_of_a_malformed_one_are_answered(client: RawClient) -> None:
    client.send(api_versions(1) + framed(b"\xff" * 40) + api_versions(2))
    client.answer(wire.API_VERSIONS, 0, 1)
    assert client.is_closed_by_server()


def test_trailing_bytes_are_tolerated(client: RawClient) -> None:
    # librdkafka 2.16 sends three too many in Metadata 9 for all topics
    payload = request(wire.METADATA, 9, topics=None, allow_auto_topic_creation=False)
    client.send(framed(payload + b"\x00\x00\x00"))
    assert [topic.name for topic in client.answer(wire.METADATA, 9).topics] == ["orders"]


def test_a_parked_join_mutes_its_connection_and_no_other(broker: EmbeddedBroker, client: RawClient) -> None:
    started_s = time.monotonic()
    client.send(join("g", 1) + api_versions(2))
    assert is_serving(broker)
    assert client.answer(wire.JOIN_GROUP, 3, 1).generation_id == 1
    assert (
        time.monotonic() - started_s >= (INITIAL_DELAY_MS - 1) / 1000
    )  # the broker counts whole milliseconds
    client.answer(wire.API_VERSIONS, 0, 2)


def test_a_client_that_goes_while_its_join_is_parked_stays_a_member(
    broker: EmbeddedBroker, client: RawClient
) -> None:
    with RawClient((broker.host, broker.port)) as leaving:
        leaving.send(join("g"))
    # the coordinator does not see connections: the round completes with the member that nobody hears
    client.send(join("g"))
    client.answer(wire.JOIN_GROUP, 3)
    described = client.ask(wire.DESCRIBE_GROUPS, 0, groups=("g",))
    assert len(described.groups[0].members) == 2


def produce(acks: int, partition: int = 0, correlation_id: int = 1) -> bytes:
    data = {"index": partition, "records": wire.batch([b"value"])}
    topic = {"name": "orders", "partition_data": (data,)}
    return framed(
        request(wire.PRODUCE, 8, correlation_id, acks=acks, timeout=milliseconds(1000), topic_data=(topic,))
    )


def test_a_produce_without_acks_has_no_answer_and_holds_nothing_up(client: RawClient) -> None:
    client.send(produce(acks=0, correlation_id=1) + produce(acks=1, correlation_id=2) + api_versions(3))
    produced = client.answer(wire.PRODUCE, 8, 2)
    assert produced.responses[0].partition_responses[0].base_offset == 1, "the first one was written as well"
    client.answer(wire.API_VERSIONS, 0, 3)


def test_a_produce_without_acks_that_fails_closes_the_connection(client: RawClient) -> None:
    client.send(produce(acks=0, partition=99))
    assert client.is_closed_by_server()


def test_a_string_too_long_to_be_echoed_closes_the_connection(
    broker: EmbeddedBroker, client: RawClient
) -> None:
    # 20,000 bytes that are no UTF-8 become 60,000 that are, which no string of the protocol can hold
    name = b"\xff" * 20_000
    body = struct.pack(">ih", 1, len(name)) + name + b"\x00"
    client.send(framed(wire.request_header(wire.METADATA, 4, 1) + body))
    assert client.is_closed_by_server()
    assert is_serving(broker)


def test_connections_beyond_the_limit_are_closed_as_they_come() -> None:
    with EmbeddedBroker({"max.connections": "2"}) as broker:
        address = (broker.host, broker.port)
        with RawClient(address) as first, RawClient(address) as second:
            for client in (first, second):
                assert client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE
            with RawClient(address) as third:
                assert third.is_closed_by_server()
        assert [why for _, why in broker.closed] == ["max.connections=2 are there"]
        wait_until(lambda: is_open_for_one_more(address))


def is_open_for_one_more(address: tuple[str, int]) -> bool:
    with RawClient(address) as client:
        try:
            return bool(client.ask(wire.API_VERSIONS, 0).error_code == Error.NONE)
        except ConnectionError:
            return False


def test_idle_connections_are_closed_and_those_that_wait_are_not() -> None:
    # long enough for a busy machine to send the join that keeps its connection open
    options = {"connections.max.idle.ms": "500", "group.initial.rebalance.delay.ms": "60000"}
    with EmbeddedBroker(options) as broker:
        address = (broker.host, broker.port)
        with RawClient(address) as parked, RawClient(address) as idle:
            parked.send(join("g"))
            assert idle.is_closed_by_server()
            broker.move_coordinator("g")
            assert parked.answer(wire.JOIN_GROUP, 3).error_code == Error.NOT_COORDINATOR
