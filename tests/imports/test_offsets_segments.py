"""Segment files of `__consumer_offsets`: compression, old versions of the records, and damage."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.broker.log.batches import parse_stored, placed_at
from groupstorm.broker.log.records import keyed_records
from groupstorm.imports.importing import Options, import_logs
from groupstorm.imports.lines import find_logs
from groupstorm.imports.offsets_topic.schemas import read_key, read_value
from groupstorm.imports.output import Imported
from groupstorm.problems import InputError
from groupstorm.protocol.codec import CodecError
from tests.imports.importing import rows
from tests.imports.offsets_dumps import SEGMENT, told

NAME = "00000000000000000000.log"
REAL = (SEGMENT / NAME).read_bytes()


def import_bytes(folder: Path, data: bytes, name: str = f"__consumer_offsets-0/{NAME}") -> Imported:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return import_logs(find_logs([str(path)]), folder / "out", Options())


def batches() -> list[tuple[int, int]]:
    """Where each batch of the real segment begins and ends."""
    found, at = [], 0
    while at < len(REAL):
        size = 12 + struct.unpack_from(">i", REAL, at + 8)[0]
        found.append((at, at + size))
        at += size
    return found


def test_a_file_of_another_name_is_known_by_its_first_batch(tmp_path: Path) -> None:
    (done,) = import_bytes(tmp_path, REAL, "copied").logs
    assert (done.unit, done.understood) == ("record", 62)
    assert rows(tmp_path, "offsets_committed")[0]["evidence"] == [f"{tmp_path / 'copied'}:2"]


def test_topic_names_come_from_the_data_folder(tmp_path: Path) -> None:
    """Without them, and without commits, topic ids stand in place of names."""
    records = [batch for batch in batches() if b"\x00\x06orders" not in REAL[slice(*batch)]]
    data = b"".join(REAL[start:end] for start, end in records)
    import_bytes(tmp_path, data)
    assert rows(tmp_path, "member_reconciled")[0]["partitions"][0] == "oLlhRvJxTxeK2HDZ35t4PA-0"
    beside = tmp_path / "orders-0"
    beside.mkdir()
    (beside / "partition.metadata").write_text("version: 0\ntopic_id: oLlhRvJxTxeK2HDZ35t4PA")
    import_bytes(tmp_path, data)
    assert rows(tmp_path, "member_reconciled")[0]["partitions"][0] == "orders-0"


def test_a_brokers_data_folder(tmp_path: Path) -> None:
    """Segments of other topics and indexes are left out; segments of one partition are one source."""
    cut = batches()[15][0]
    base = struct.unpack_from(">q", REAL, cut)[0]
    partition, other = tmp_path / "data" / "__consumer_offsets-0", tmp_path / "data" / "orders-0"
    partition.mkdir(parents=True)
    other.mkdir()
    (partition / NAME).write_bytes(REAL[:cut])
    (partition / f"{base:020d}.log").write_bytes(REAL[cut:])
    (partition / NAME.replace(".log", ".index")).write_bytes(bytes(10))
    (other / NAME).write_bytes(REAL)
    (log,) = find_logs([str(tmp_path / "data")])
    done = import_logs([log], tmp_path / "out", Options())
    assert done.logs[0].understood == 62
    places = [row["evidence"][0] for row in rows(tmp_path, "offsets_committed")]
    assert places[0] == f"{partition / NAME}:2"
    assert places[-1] == f"{partition / f'{base:020d}.log'}:35"


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_compressed_batches(compression: int, tmp_path: Path) -> None:
    """aiokafka writes the same records once more, compressed."""
    builders = pytest.importorskip("aiokafka.record.default_records")
    data = b""
    for start, end in batches():
        batch = parse_stored(REAL[start:end]) or pytest.fail("a real batch")
        builder = builders.DefaultRecordBatchBuilder(2, compression, False, -1, -1, -1, 1 << 20)
        for one in keyed_records(batch.data, batch.data[61:]):
            builder.append(one.offset_delta, one.timestamp_ms, one.key, one.value, [])
        again = parse_stored(bytes(builder.build())) or pytest.fail("a batch of aiokafka")
        assert again.compression in (compression, 0)  # aiokafka keeps what compression would make longer
        data += placed_at(again, batch.base_offset, 0)
    import_bytes(tmp_path, REAL)
    expected = told(tmp_path)
    import_bytes(tmp_path, data)
    assert told(tmp_path) == expected


def test_a_segment_that_breaks_off(tmp_path: Path) -> None:
    start, end = batches()[-1]
    for size in (start + 1, start + 30, end - 1):
        (done,) = import_bytes(tmp_path, REAL[:size]).logs
        assert done.damage == [
            f"{tmp_path}/__consumer_offsets-0/{NAME}: the last batch breaks off at byte {size}"
        ]
        assert done.understood == 57


def test_a_segment_that_was_allocated_in_advance(tmp_path: Path) -> None:
    (done,) = import_bytes(tmp_path, REAL + bytes(4096)).logs
    assert (done.damage, done.understood) == ([], 62)


def test_a_wrong_checksum_costs_one_batch(tmp_path: Path) -> None:
    _, end = batches()[3]
    broken = bytearray(REAL)
    broken[end - 1] ^= 0xFF
    (done,) = import_bytes(tmp_path, bytes(broken)).logs
    assert done.understood == 61
    assert done.damage == [
        f"{tmp_path}/__consumer_offsets-0/{NAME}: the batch at offset 3 has a wrong checksum, left out"
    ]


def test_a_length_that_is_none(tmp_path: Path) -> None:
    start, _ = batches()[3]
    for length in (-1, 0, 2**31 - 1):
        broken = REAL[: start + 8] + struct.pack(">i", length) + REAL[start + 12 :]
        (done,) = import_bytes(tmp_path, broken).logs
        (sentence,) = done.damage
        assert "breaks off" in sentence or f"at byte {start} is no record batch" in sentence
        assert done.understood == 3


def test_no_record_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of 0 lines"):
        import_bytes(tmp_path, b"\x00" * 7)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.integers(-1, 24), st.binary(max_size=40))
def test_no_key_and_no_value_breaks_the_reader(number: int, rest: bytes) -> None:
    written = struct.pack(">h", number) + rest
    with suppress(CodecError):
        read_key(written)
    for key_type in (1, 2, 5, 8):
        with suppress(CodecError):
            read_value(key_type, written)


def string(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode()


def data(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_versions_of_a_generation(version: int) -> None:
    """GroupMetadataValue by hand, as its schema in Kafka 4.3.1 has it."""
    member = string("m-1") + (string(None) if version >= 3 else b"") + string("client") + string("/host")
    member += struct.pack(">i", 300_000) if version >= 1 else b""
    member += struct.pack(">i", 10_000) + data(b"sub") + data(b"")
    value = (
        struct.pack(">h", version)
        + string("consumer")
        + struct.pack(">i", 5)
        + string("range")
        + string("m-1")
    )
    value += struct.pack(">q", 1234) if version >= 2 else b""
    value += struct.pack(">i", 1) + member
    found = read_value(2, value)
    assert found is not None
    assert (found["generation"], found["protocol"], found["leader"]) == (5, "range", "m-1")
    assert found.get("currentStateTimestamp") == (1234 if version >= 2 else None)
    (read,) = found["members"]
    assert (read["memberId"], read["sessionTimeout"], read["subscription"]) == ("m-1", 10_000, b"sub")
    assert read.get("rebalanceTimeout") == (300_000 if version >= 1 else None)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_versions_of_a_commit(version: int) -> None:
    value = struct.pack(">hq", version, 77)
    value += struct.pack(">i", 4) if version == 3 else b""
    value += string("note") + struct.pack(">q", 1000) + (struct.pack(">q", 2000) if version == 1 else b"")
    found = read_value(1, value)
    assert found is not None
    assert (found["offset"], found["commitTimestamp"], found["metadata"]) == (77, 1000, "note")
    assert found.get("expireTimestamp") == (2000 if version == 1 else None)


def test_a_version_of_the_future_is_refused() -> None:
    with pytest.raises(CodecError, match="version 5 of a record of type 2"):
        read_value(2, struct.pack(">h", 5))
