"""ConsumerProtocol bytes: against kio's schemas and kafka-python, there and back, and on garbage."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from groupstorm.assignors.userdata import (
    SchemaError,
    Subscription,
    TopicPartition,
    UserDataError,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INT32 = st.integers(-(2**31), 2**31 - 1)
PARTITION = st.builds(TopicPartition, TEXT, INT32)
SUBSCRIPTION = st.builds(
    Subscription,
    topics=st.lists(TEXT, max_size=5).map(tuple),
    user_data=st.none() | st.binary(max_size=20),
    owned=st.lists(PARTITION, max_size=8).map(tuple),
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | TEXT.filter(bool),
)


def kio_schema(kind: str, version: int) -> Any:
    module = import_module(f"kio.schema.consumer_protocol_{kind}.v{version}.data")
    return module


def kio_read(kind: str, data: bytes) -> Any:
    version = int.from_bytes(data[:2], "big")
    entity = getattr(kio_schema(kind, version), f"ConsumerProtocol{kind.capitalize()}")
    value, size = entity_reader(entity)(data[2:], 0)
    assert size == len(data) - 2, "kio leaves bytes unread"
    return value


@given(SUBSCRIPTION, st.integers(0, 3))
def test_kio_reads_what_we_write(subscription: Subscription, version: int) -> None:
    value = kio_read("subscription", encode_subscription(subscription, version))
    assert sorted(value.topics) == sorted(subscription.topics)
    assert value.user_data == subscription.user_data
    if version >= 1:
        owned = [(group.topic, p) for group in value.owned_partitions for p in group.partitions]
        assert sorted(owned) == sorted(subscription.owned)
        assert len({group.topic for group in value.owned_partitions}) == len(value.owned_partitions)
    if version >= 2:
        assert value.generation_id == subscription.generation
    if version >= 3:
        assert value.rack_id == subscription.rack


@given(SUBSCRIPTION, st.integers(0, 3))
def test_we_read_what_kio_writes(subscription: Subscription, version: int) -> None:
    schema = kio_schema("subscription", version)
    fields: dict[str, Any] = {"topics": subscription.topics, "user_data": subscription.user_data}
    if version >= 1:
        fields["owned_partitions"] = tuple(
            schema.TopicPartition(topic=tp.topic, partitions=(tp.partition,)) for tp in subscription.owned
        )
    if version >= 2:
        fields["generation_id"] = subscription.generation
    if version >= 3:
        fields["rack_id"] = subscription.rack
    buffer = io.BytesIO()
    entity_writer(schema.ConsumerProtocolSubscription)(buffer, schema.ConsumerProtocolSubscription(**fields))
    assert decode_subscription(version.to_bytes(2, "big") + buffer.getvalue()) == Subscription(
        subscription.topics,
        subscription.user_data,
        subscription.owned if version >= 1 else (),
        subscription.generation if version >= 2 else -1,
        subscription.rack if version >= 3 else None,
    )


@given(st.lists(PARTITION, max_size=10), st.none() | st.binary(max_size=9), st.integers(0, 3))
def test_assignments_agree_with_kio(
    partitions: list[TopicPartition], user_data: bytes | None, version: int
) -> None:
    data = encode_assignment(partitions, user_data, version)
    value = kio_read("assignment", data)
    read = [(group.topic, p) for group in value.assigned_partitions for p in group.partitions]
    first_seen = list(dict.fromkeys(tp.topic for tp in partitions))
    expected = [tp for topic in first_seen for tp in partitions if tp.topic == topic]
    assert read == expected
    assert value.user_data == user_data
    assert decode_assignment(data) == (tuple(expected), user_data)


@given(SUBSCRIPTION, st.integers(0, 3))
def test_a_second_trip_changes_nothing(subscription: Subscription, version: int) -> None:
    data = encode_subscription(subscription, version)
    assert encode_subscription(decode_subscription(data), version) == data


@given(SUBSCRIPTION, st.randoms(use_true_random=False))
def test_bytes_do_not_depend_on_the_order_of_lists(subscription: Subscription, shuffle: Any) -> None:
    """Otherwise the coordinator would see other metadata at every join (KAFKA-12898)."""
    topics, owned = list(subscription.topics), list(subscription.owned)
    shuffle.shuffle(topics)
    shuffle.shuffle(owned)
    other = subscription._replace(topics=tuple(topics), owned=tuple(owned))
    assert encode_subscription(other) == encode_subscription(subscription)


@given(SUBSCRIPTION, st.data())
def test_broken_subscriptions_raise_only_our_error(subscription: Subscription, draw: st.DataObject) -> None:
    data = bytearray(encode_subscription(subscription))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    cut = draw.draw(st.integers(0, len(data)))
    for candidate in (bytes(data), bytes(data[:cut])):
        with contextlib.suppress(UserDataError):
            decode_subscription(candidate)


@given(SUBSCRIPTION, st.integers(4, 0x7FFF), st.binary(max_size=5))
def test_a_newer_version_is_read_as_3_and_the_rest_ignored(
    subscription: Subscription, version: int, rest: bytes
) -> None:
    data = encode_subscription(subscription)
    assert decode_subscription(version.to_bytes(2, "big") + data[2:] + rest) == decode_subscription(data)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", SchemaError),
        (b"\x00", SchemaError),
        (b"\xff\xff\x00\x00\x00\x00", SchemaError),  # version -1
        (b"\x00\x03\x00\x00", SchemaError),  # an array's length cut short
        (b"\x00\x03\x7f\xff\xff\xff", UserDataError),  # more topics than bytes
        (b"\x00\x03\xff\xff\xff\xff", UserDataError),  # null topics
        (b"\x00\x03\x00\x00\x00\x01\x00\x05ab", UserDataError),  # a string beyond the end
        (b"\x00\x03\x00\x00\x00\x01\xff\xff", UserDataError),  # a null topic
        (b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09a", UserDataError),  # user data beyond the end
    ],
)
def test_what_kafka_calls_a_schema_exception_is_told_apart(data: bytes, kind: type[UserDataError]) -> None:
    """Kafka's coordinator survives a SchemaException, but not every other error of its parser."""
    with pytest.raises(UserDataError) as raised:
        decode_subscription(data)
    assert raised.type is kind


def test_strings_are_javas() -> None:
    """A lone surrogate is written as a question mark; an encoded one is read as one replacement."""
    assert b"?" in encode_subscription(Subscription(("\ud800",)), 0)
    encoded = b"\x00\x00\x00\x00\x00\x01\x00\x04\xed\xa0\x80a\xff\xff\xff\xff"
    assert decode_subscription(encoded).topics == ("\ufffda",)


def test_topics_sort_by_utf16_code_units() -> None:
    """A character beyond the basic plane sorts before U+FFEE, as its surrogates do."""
    data = encode_subscription(Subscription(("\uffee", "\U0001d4b3")), 0)
    assert decode_subscription(data).topics == ("\U0001d4b3", "\uffee")


def test_a_string_too_long_for_the_wire_is_refused() -> None:
    with pytest.raises(UserDataError, match="32768 bytes"):
        encode_subscription(Subscription(("x" * 32768,)))


def test_a_partition_prints_as_in_kafka() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
