"""The user data of the sticky assignors: both versions, and garbage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.userdata import (
    TopicPartition,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)

PARTITIONS = st.lists(
    st.builds(TopicPartition, st.sampled_from(["t0", "t1", "orders"]), st.integers(0, 2**31 - 1)), max_size=10
)


@given(PARTITIONS, st.none() | st.integers(-1, 2**31 - 1))
def test_there_and_back(partitions: list[TopicPartition], generation: int | None) -> None:
    read = decode_sticky(encode_sticky(partitions, generation))
    assert sorted(read.partitions) == sorted(partitions)
    assert read.generation == generation


def test_bytes_as_kafka_writes_them() -> None:
    """t1 and t0 in the order of Java's hash table, partitions as they come, then the generation."""
    data = encode_sticky([TopicPartition("t1", 4), TopicPartition("t0", 1), TopicPartition("t1", 2)], 7)
    assert data.hex() == ("000000020002743000000001000000010002743100000002000000040000000200000007")


@pytest.mark.parametrize(
    ("data", "partitions", "generation"),
    [
        (None, (), None),
        (b"", (), None),
        (bytes.fromhex("d9e353"), (), -1),
        (bytes.fromhex("7fffffff"), (), -1),
        (bytes.fromhex("00000001000274300000000100000000"), (("t0", 0),), None),  # version 0
        (bytes.fromhex("0000000000000005ff"), (), 5),  # what follows version 1 is ignored
    ],
)
def test_what_kafka_makes_of_it(
    data: bytes | None, partitions: tuple[tuple[str, int], ...], generation: int | None
) -> None:
    assert decode_sticky(data) == (partitions, generation)


@given(st.binary(max_size=40))
def test_garbage_never_raises(data: bytes) -> None:
    decode_sticky(data)
    decode_generation(data)


@pytest.mark.parametrize(
    ("data", "generation"),
    [(None, None), (b"", -1), (b"\0\0\0", -1), (encode_generation(9), 9), (encode_generation(3) + b"x", 3)],
)
def test_generation(data: bytes | None, generation: int | None) -> None:
    assert decode_generation(data) == generation
