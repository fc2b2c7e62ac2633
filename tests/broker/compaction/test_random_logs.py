"""Logs of random batches, transactions and passes, beside what a reader must find in them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.broker.log.batches import Batch
from groupstorm.broker.log.partition import PartitionLog
from tests.broker.compaction.reading import NOW_MS, Read, append, clean, compacted_log, read

TRANSACTIONAL = 0x10
DELETE_RETENTION_MS = 100

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
RECORDS = st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), RECORDS),
        st.tuples(st.just("idempotent"), RECORDS),
        st.tuples(st.just("transactional"), RECORDS),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("clean"), st.integers(1, 150)),
    ),
    max_size=30,
)


class Told(NamedTuple):
    """A record that was appended, and how the newest of the passes saw it."""

    log: PartitionLog
    records: list[Read]
    committed: list[Read]
    """Those of open transactions are not among them."""
    passes: list[tuple[int, int]]
    """End offset and time of each pass."""


def play(steps: list[Any]) -> Told:
    log = compacted_log(delete_retention_ms=DELETE_RETENTION_MS)
    told = Told(log, [], [], [])
    now_ms, counter = NOW_MS, 0
    sequences = {7: 0, 8: 0}
    pending: list[Read] = []
    for kind, what in steps:
        if kind == "clean":
            now_ms += what
            end_offset = log.cleanable(now_ms).end_offset
            if clean(log, now_ms):
                told.passes.append((end_offset, now_ms))
        elif kind == "end":
            if 8 in log.transactions.open:
                log.append_marker(8, 0, what, now_ms)
                told.committed.extend(pending if what else [])
                pending.clear()
        else:
            fields: dict[str, int] = {}
            if kind != "plain":
                producer = 7 if kind == "idempotent" else 8
                fields = {"producer_id": producer, "epoch": 0, "sequence": sequences[producer]}
                sequences[producer] += len(what)
                fields["attributes"] = TRANSACTIONAL if kind == "transactional" else 0
            records = []
            for key, has_value in what:
                counter += 1
                records.append((key, b"%d" % counter if has_value else None))
            base = append(log, *records, **fields)
            read_back = [Read(base + at, *one) for at, one in enumerate(records)]
            told.records.extend(read_back)
            (pending if kind == "transactional" else told.committed).extend(read_back)
    return told


def table(records: list[Read]) -> dict[bytes | None, bytes]:
    """Return a reader's table behind all records: the newest value of each key."""
    newest: dict[bytes | None, bytes] = {}
    for one in sorted(records):
        if one.value is None:
            newest.pop(one.key, None)
        else:
            newest[one.key] = one.value
    return newest


@given(STEPS)
def test_a_reader_finds_the_newest_value_of_each_key(steps: list[Any]) -> None:
    told = play(steps)
    found = [*read(told.log, committed_only=True)]
    stable = told.log.last_stable_offset
    assert table(found) == table([one for one in told.committed if one.offset < stable])
    assert {*found} <= {*told.records}, "every record is one that was written, at its offset"
    assert [one.offset for one in found] == sorted(one.offset for one in found)


@given(STEPS)
def test_no_older_record_of_a_key_is_left_in_front_of_the_last_pass(steps: list[Any]) -> None:
    """The set of records itself: the newest committed one of each key among those that the last pass saw, and
    all behind. A tombstone may have gone after its time, and is never younger."""
    told = play(steps)
    end_offset, last_ms = told.passes[-1] if told.passes else (0, NOW_MS)
    stable = told.log.last_stable_offset
    newest = {one.key: one for one in sorted(told.committed) if one.offset < end_offset}
    wanted = {*newest.values()} | {one for one in told.committed if end_offset <= one.offset < stable}
    found = {*read(told.log, committed_only=True)}
    assert found <= wanted
    for gone in wanted - found:
        met_ms = min(time_ms for end, time_ms in told.passes if gone.offset < end)
        assert gone.value is None
        assert met_ms + DELETE_RETENTION_MS <= last_ms


@given(STEPS)
def test_offsets_and_producers_go_on_as_if_nothing_was_compacted(steps: list[Any]) -> None:
    told = play(steps)
    untouched = play([step for step in steps if step[0] != "clean"])
    log, other = told.log, untouched.log
    assert (log.end_offset, log.last_stable_offset) == (other.end_offset, other.last_stable_offset)
    assert log.producers.kept() == other.producers.kept()
    assert log.size_bytes == sum(map(len, log.batches.all_data()))
    headers = [Batch.read(one) for one in log.batches.all_data()]
    for one, behind in pairwise(headers):
        assert one.last_offset < behind.base_offset
    last = log.producers.last_records()
    for number, record in last.items():
        kept = [one for one in headers if one.producer_id == number and one.last_offset == record.offset]
        assert kept, "the batch with the producer's last sequence number is there"


@given(STEPS)
def test_a_second_pass_at_once_changes_nothing(steps: list[Any]) -> None:
    """All that is cleaned stays as it is, but for markers whose transactions have gone in the first pass."""
    told = play([*steps, ("clean", 1)])
    before = [*read(told.log)]
    told.log.first_dirty_offset = 0
    clean(told.log, told.passes[-1][1] if told.passes else NOW_MS)
    assert [*read(told.log)] == before


@pytest.mark.slow
def test_a_large_log_is_compacted() -> None:
    """A record of each key is left, and the newest batch, which no pass touches."""
    log = compacted_log()
    for number in range(20_000):
        append(log, *((b"%d" % (number % 500), b"%d" % at) for at in range(5)))
    assert clean(log)
    assert len([*read(log)]) == 500 + 5
