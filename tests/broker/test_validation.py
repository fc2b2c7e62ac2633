"""Records that a topic's configurations refuse: without a key, or with a timestamp out of range (KIP-467)."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from structlog.testing import capture_logs

from groupstorm.broker.log.records import MAX_UNPACKED_BYTES, UnpackError, pack, unpack
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, produce
from tests.broker.driver import Driver
from tests.broker.frames.requests import checked, compressed

#: Behind the header of `wire.batch`.
RECORDS_AT = 61
NOW_MS = 1_700_000_000_000


@pytest.fixture
def compacted(driver: Driver) -> Driver:
    assert alter_configs(driver, 1, ("cleanup.policy", 0, "compact")) is Error.NONE
    return driver


def refused_records(answer: Any) -> list[tuple[int, str]]:
    return [(one.batch_index, one.batch_index_error_message) for one in answer.record_errors]


def test_the_message_shows_three_errors_and_the_answer_has_all(compacted: Driver) -> None:
    answer = produce(compacted, 9, records=wire.batch([b"a"] * 5))
    assert [index for index, _ in refused_records(answer)] == [0, 1, 2, 3, 4]
    assert "due to 5 record errors" in answer.error_message
    assert answer.error_message.count("RecordError(") == 3


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_compressed_records_are_looked_at_too(compacted: Driver, compression: int) -> None:
    _need_library(compression)
    for keys, expected in (([b"k", None], Error.INVALID_RECORD), ([b"k", b"k"], Error.NONE)):
        data = compressed(wire.batch([b"a", b"b"], keys=keys), compression)
        assert produce(compacted, 9, records=data).error_code == expected


def test_a_compression_that_cannot_be_read_is_told_once(
    compacted: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)
    data = wire.batch([b"a"], keys=[b"k"])
    unread = checked(data[:22] + bytes((data[22] | 3,)) + data[23:])
    with capture_logs() as logs:
        for _ in range(2):
            assert produce(compacted, 9, records=unread).error_code == Error.NONE
    assert [(line["log_level"], line["why"]) for line in logs] == [
        ("warning", "snappy, lz4 and zstd need cramjam: pip install cramjam")
    ]


def _need_library(compression: int) -> None:
    if compression > 1:
        pytest.importorskip("cramjam", reason="snappy, lz4 and zstd: pip install cramjam")


def test_records_that_cannot_be_read_are_refused(compacted: Driver) -> None:
    data = bytearray(wire.batch([b"a"], keys=[b"k"]))
    data[RECORDS_AT] = 0x7E  # the first record's length
    answer = produce(compacted, 9, records=checked(bytes(data)))
    assert answer.error_code == Error.INVALID_RECORD
    assert "cannot be read" in answer.error_message
    bomb = compressed(wire.batch([b"a"]), records=bytes(MAX_UNPACKED_BYTES + 1))
    assert produce(compacted, 9, records=bomb).error_code == Error.INVALID_RECORD


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [0, 1, 1_000, 100_000, 3_000_000])
def test_what_is_packed_unpacks(compression: int, size: int) -> None:
    _need_library(compression)
    data = (b"some records " * (size // 13 + 1))[:size]
    assert unpack(pack(data, compression), compression) == data


@pytest.mark.parametrize("compression", [2, 3, 4])
def test_the_clients_libraries_read_what_we_pack_and_we_read_theirs(compression: int) -> None:
    codec = pytest.importorskip("aiokafka.codec")
    _need_library(compression)
    name = {2: "snappy", 3: "lz4", 4: "zstd"}[compression]
    data = b"some records " * 10_000
    assert bytes(getattr(codec, f"{name}_decode")(pack(data, compression))) == data
    assert unpack(bytes(getattr(codec, f"{name}_encode")(data)), compression) == data


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
@pytest.mark.parametrize("data", [b"x", b"\xff" * 40, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0\0\x7f"])
def test_bytes_of_no_compression_are_one_error(compression: int, data: bytes) -> None:
    _need_library(compression)
    with pytest.raises(UnpackError):
        unpack(data, compression)


@pytest.mark.slow
def test_more_than_the_limit_is_not_unpacked() -> None:
    for compression in (1, 2, 3, 4):
        _need_library(compression)
        with pytest.raises(UnpackError):
            unpack(pack(bytes(MAX_UNPACKED_BYTES + 1), compression), compression)


# timestamps


@pytest.mark.parametrize(
    ("configs", "stamps_ms", "first", "last", "refused"),
    [
        ((), [NOW_MS, NOW_MS + 3_600_000], None, None, []),
        ((), [NOW_MS, NOW_MS + 3_600_001], NOW_MS - (2**63 - 1), NOW_MS + 3_600_000, [1]),
        ((("after", "0"),), [NOW_MS + 1, NOW_MS], NOW_MS - (2**63 - 1), NOW_MS, [0]),
        ((("before", "10"),), [NOW_MS - 10, NOW_MS - 11, 0], NOW_MS - 10, NOW_MS + 3_600_000, [1, 2]),
        ((("before", "10"),), [NOW_MS - 10], None, None, []),
    ],
)
def test_timestamps_out_of_range_refuse_the_batch(
    driver: Driver,
    configs: tuple[tuple[str, str], ...],
    stamps_ms: list[int],
    first: int,
    last: int,
    refused: list[int],
) -> None:
    """LogValidator.validateTimestamp; the bounds themselves are allowed."""
    for side, value in configs:
        assert alter_configs(driver, 1, (f"message.timestamp.{side}.max.ms", 0, value)) is Error.NONE
    answer = produce(driver, 9, records=wire.batch([b"v"] * len(stamps_ms), stamps_ms=stamps_ms))
    expected = [
        f"Timestamp {stamps_ms[index]} of message with offset {index} is out of range."
        f" The timestamp should be within [{first}, {last}]"
        for index in refused
    ]
    assert refused_records(answer) == [*zip(refused, expected, strict=True)]
    assert answer.error_code == (Error.INVALID_TIMESTAMP if refused else Error.NONE)
    sentence = "One or more records have been rejected due to invalid timestamp" if refused else None
    assert answer.error_message == sentence


def test_the_brokers_own_time_is_never_out_of_range(driver: Driver) -> None:
    alter_configs(driver, 1, ("message.timestamp.type", 0, "LogAppendTime"))
    assert produce(driver, 9, records=wire.batch([b"v"], timestamp_ms=2 * NOW_MS)).error_code == Error.NONE


def test_a_record_without_a_time_is_never_out_of_range(driver: Driver) -> None:
    alter_configs(driver, 1, ("message.timestamp.before.max.ms", 0, "10"))
    assert produce(driver, 9, records=wire.batch([b"v"], timestamp_ms=-1)).error_code == Error.NONE


def test_one_timestamp_among_the_errors_decides(compacted: Driver) -> None:
    records = wire.batch([b"v", b"v"], keys=[None, b"k"], stamps_ms=[NOW_MS, 2 * NOW_MS])
    answer = produce(compacted, 9, records=records)
    assert answer.error_code == Error.INVALID_TIMESTAMP
    assert [index for index, _ in refused_records(answer)] == [0, 1]
