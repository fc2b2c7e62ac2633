"""The codec writes the bytes of kio and of kafka-python, and checks every length."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError, decoder, encoder, request_type, response_types
from groupstorm.protocol.codec.decode import read_unsigned_varint
from groupstorm.protocol.codec.encode import unsigned_varint
from tests.broker.random_messages import random_message


def written(message: Any) -> bytes:
    return b"".join(encoder(message.__class__)(message))


def written_by_kio(message: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def served_types() -> Iterator[Any]:
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            yield request_type(api.key, version)
            yield response_types(api.key, version).root


def all_types() -> Iterator[Any]:
    for api_key, name in api_key_map.items():
        for version in schema_name_map[name]:
            yield request_type(api_key, version)
            yield response_types(api_key, version).root


def check_against_kio(message_type: Any, seed: int, count: int) -> None:
    draw = random.Random(f"{seed} {message_type.__module__}")
    for _ in range(count):
        message = random_message(message_type, draw)
        data = written(message)
        assert data == written_by_kio(message), message
        assert decoder(message_type)(b"before" + data + b"behind", 6) == (message, 6 + len(data))


@pytest.mark.slow
def test_written_bytes_are_kios_and_read_back() -> None:
    for message_type in served_types():
        check_against_kio(message_type, seed=1, count=8)


@pytest.mark.slow
def test_all_of_kafkas_apis_are_byte_identical_to_kio() -> None:
    for message_type in all_types():
        check_against_kio(message_type, seed=2, count=8)


def mutate(data: bytes, draw: random.Random) -> bytes:
    mutated = bytearray(data)
    match draw.randrange(4):
        case 0:
            del mutated[draw.randrange(len(mutated) + 1) :]
        case 1:
            for _ in range(draw.randint(1, 4)):
                mutated[draw.randrange(len(mutated))] = draw.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256))
                )
        case 2:
            at = draw.randrange(len(mutated) + 1)
            mutated[at:at] = draw.choice((b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\xff" * 12))
        case _:
            at = draw.randrange(len(mutated))
            del mutated[at : at + draw.randint(1, 8)]
    return bytes(mutated)


@pytest.mark.slow
def test_mutated_bytes_give_a_message_or_the_codecs_own_error() -> None:
    draw = random.Random(3)
    refused = 0
    for message_type in served_types():
        data = written(random_message(message_type, draw)) + b"\x00"
        for _ in range(60):
            try:
                decoder(message_type)(mutate(data, draw), 0)
            except CodecError:
                refused += 1
    assert refused > 1000


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**28 - 1, 2**31 - 1, 2**32 - 1])
def test_varints_read_back(value: int) -> None:
    assert read_unsigned_varint(unsigned_varint(value), 0) == (value, len(unsigned_varint(value)))


def test_a_varint_ends_within_five_bytes() -> None:
    with pytest.raises(CodecError, match="varint"):
        read_unsigned_varint(b"\x80\x80\x80\x80\x80\x00", 0)


def metadata_request(version: int, body: bytes) -> Any:
    return decoder(request_type(3, version))(body, 0)


def test_an_array_of_four_billion_elements_is_refused_before_anything_is_made() -> None:
    with pytest.raises(CodecError, match="announces 4294967294 elements, 3 bytes are left"):
        metadata_request(12, b"\xff\xff\xff\xff\x0f\x00\x00\x00")


def test_an_array_needs_room_for_its_elements_and_not_just_for_a_byte_each() -> None:
    # three topics need at least 18 bytes each: an id and two lengths
    with pytest.raises(CodecError, match="announces 3 elements"):
        metadata_request(12, b"\x04" + b"\x00" * 20)


def test_a_string_longer_than_the_bytes_is_refused() -> None:
    with pytest.raises(CodecError, match="name announces 500 bytes, 1 are left"):
        metadata_request(1, struct.pack(">ih", 1, 500) + b"t")


def test_a_compact_string_has_no_more_than_32767_bytes() -> None:
    body = unsigned_varint(40_001) + b"x" * 40_000 + b"\x01\x00"
    with pytest.raises(CodecError, match="allowed are 32767"):
        decoder(request_type(18, 3))(body, 0)


def test_null_is_refused_if_the_version_has_none() -> None:
    with pytest.raises(CodecError, match="topics is null"):
        metadata_request(0, struct.pack(">i", -1))
    assert metadata_request(1, struct.pack(">i", -1))[0].topics is None


def test_unknown_tagged_fields_are_skipped() -> None:
    body = b"\x02a" + b"\x021" + b"\x02" + b"\x09\x03abc" + b"\xf0\x07\x00"
    message, at = decoder(request_type(18, 3))(body, 0)
    assert (message.client_software_name, message.client_software_version, at) == ("a", "1", len(body))


def test_a_tagged_field_stays_within_its_own_bytes() -> None:
    fetch = request_type(1, 12)
    data = written(random_message(fetch, random.Random(5)))
    untagged = data[: decoder(fetch)(data, 0)[1]]
    message = decoder(fetch)(untagged, 0)[0]
    assert message is not None
    cluster_id_of_five_bytes = b"\x01" + b"\x00\x03" + b"\x06abcde"
    body = struct.pack(">iiiibii", -1, 0, 0, 0, 0, 0, 0) + b"\x01\x01\x01" + cluster_id_of_five_bytes
    with pytest.raises(CodecError, match="longer than the 3 bytes"):
        decoder(fetch)(body, 0)


def test_bytes_that_are_no_utf8_are_replaced_as_java_does() -> None:
    assert metadata_request(1, struct.pack(">ih", 1, 2) + b"a\xff")[0].topics[0].name == "a\ufffd"


def test_an_error_code_that_nobody_knows_is_unknown_server_error() -> None:
    heartbeat = response_types(12, 0)
    message, _ = decoder(heartbeat.root)(struct.pack(">h", 9999), 0)
    assert message.error_code == Error.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("member_id", [None, "x" * 40_000, 17])
@pytest.mark.parametrize("version", [0, 9])
def test_the_writer_refuses_values_that_a_version_cannot_carry(version: int, member_id: Any) -> None:
    types = response_types(11, version)
    message = types.response(
        error_code=Error.NONE, protocol_name="", generation_id=1, leader="", member_id=member_id, members=()
    )
    with pytest.raises(CodecError):
        written(message)


def test_a_response_drops_the_fields_that_its_version_lacks_and_demands_the_others() -> None:
    named = {"error_code": Error.NONE, "generation_id": 3, "leader": "a", "member_id": "b", "members": ()}
    old = response_types(11, 0).response(protocol_name="range", skip_assignment=True, **named)
    assert not hasattr(old, "skip_assignment")
    with pytest.raises(TypeError, match="protocol_name"):
        response_types(11, 0).response(**named)


@pytest.mark.slow
def test_kafka_python_reads_what_is_written_and_writes_the_same() -> None:
    pytest.importorskip("kafka.protocol", reason="pip install kafka-python (extra `kafka`)")
    messages = kafka_python_messages()
    draw = random.Random(6)
    compared = 0
    for message_type in served_types():
        theirs = messages.get(message_type.__name__)
        version = message_type.__version__
        # kafka-python reads an ApiVersions response that has an error in version 0, whatever was asked
        # and its DeleteTopicsRequest cannot write what it has read
        if theirs is None or version > theirs.max_version or theirs.__name__ in THEIR_OWN_WAYS:
            continue
        for _ in range(2):
            data = written(random_message(message_type, draw))
            assert theirs[version].decode(data).encode() == data, message_type
            compared += 1
    assert compared > 300


THEIR_OWN_WAYS = ("ApiVersionsResponse", "DeleteTopicsRequest")


def kafka_python_messages() -> dict[str, Any]:
    """kafka-python's messages by Kafka's names: JoinGroupRequest and so on."""
    from kafka.protocol import admin, consumer, metadata, producer

    modules = (admin, consumer, metadata, producer)
    return {name: getattr(module, name) for module in modules for name in module.__all__}
