"""Idempotence and isolation over restarts and compaction: what a client sees afterwards is what was promised.

A restart goes on from the journal, from a journal that was written anew, or from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groupstorm.broker.data_directory import DataDirectory
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, delete_records, fetch, list_offsets, produce
from tests.broker.driver import Driver
from tests.broker.kills.requests import read
from tests.broker.test_checkpoint import NOW_MS, OnDisk
from tests.broker.transactional import TransactionalProducer

TRANSACTIONAL = 0x10
#: A pass every 15 s, over all records but those of the last second.
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"}


class Durable(OnDisk):
    """A driver whose broker begins again from its folder, at a time of the test's choice."""

    def __init__(self, folder: Path, now_ms: int = NOW_MS) -> None:
        super().__init__(folder)
        self.folder = folder
        self.now_ms = now_ms

    def restarted(self, how: str) -> Durable:
        folder = self.folder
        if how == "checkpoint":
            self.journal.checkpoint()
        elif how == "journal written anew":
            folder = self.folder / "anew"
            directory = DataDirectory(folder, pytest.fail)
            directory.rewrite(self.broker.snapshot())
            directory.close()
        self.journal.close()
        return Durable(folder, self.now_ms)


Restart = Callable[[Durable], Durable]


@pytest.fixture
def driver(tmp_path: Path) -> Durable:
    return Durable(tmp_path)


@pytest.fixture(params=["journal", "journal written anew", "checkpoint"])
def restart(request: pytest.FixtureRequest) -> Iterator[Restart]:
    begun: list[Durable] = []

    def restarted(driver: Durable) -> Durable:
        begun.append(driver.restarted(request.param))
        return begun[-1]

    yield restarted
    begun[-1].journal.close()  # the ones before are closed


def compact(driver: Durable, **more: str) -> None:
    configs = COMPACTED | {name.replace("_", "."): value for name, value in more.items()}
    assert alter_configs(driver, 1, *((name, 0, value) for name, value in configs.items())) is Error.NONE


def write(driver: Driver, *values: bytes, key: bytes = b"k", **fields: Any) -> tuple[Error, int]:
    """One batch of records with the same key; the error and the offset of the answer."""
    more = {"transactional_id": fields.pop("transactional_id")} if "transactional_id" in fields else {}
    data = wire.batch(values, keys=[key] * len(values), timestamp_ms=driver.now_ms, **fields)
    answer = produce(driver, 9, records=data, **more)
    return Error(answer.error_code), answer.base_offset


def write_in(producer: TransactionalProducer, value: bytes, key: bytes = b"k") -> None:
    """One record of the producer's transaction."""
    own = {"producer_id": producer.producer_id, "epoch": producer.epoch, "sequence": producer.sequence}
    more = {"attributes": TRANSACTIONAL, "transactional_id": producer.name}
    assert write(producer.driver, value, key=key, **own, **more)[0] is Error.NONE
    producer.sequence += 1


def transact(driver: Driver, value: bytes, commit: bool, name: str = "t") -> TransactionalProducer:
    producer = TransactionalProducer(driver, name)
    producer.add()
    write_in(producer, value)
    assert producer.end(commit=commit) is Error.NONE
    return producer


def committed(driver: Driver) -> list[bytes | None]:
    return [one.value for one in read(driver, "orders", 0)]  # type: ignore[arg-type]  # it asks as RawClient


# idempotent producers


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_repeated_batch_is_stored_once(driver: Durable, restart: Restart, is_compacted: bool) -> None:
    """One of the producer's last five (KIP-98); compaction leaves the records of the last one."""
    if is_compacted:
        compact(driver)
    own: dict[str, Any] = {"producer_id": 7, "epoch": 1}
    batches = [{**own, "sequence": 2 * number} for number in range(6)]
    for fields in batches:
        write(driver, b"1", b"2", **fields)
    driver.now_ms += 2_000
    write(driver, b"other", key=b"another")
    driver.advance(20_000)
    before = committed(driver)
    assert (before == [b"2", b"other"]) is is_compacted
    again = restart(driver)
    for number, fields in enumerate(batches[1:], start=1):
        assert write(again, b"1", b"2", **fields) == (Error.NONE, 2 * number)
    assert committed(again) == before
    assert write(again, b"gap", **own, sequence=13)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(again, b"old", producer_id=7, epoch=0, sequence=12)[0] is Error.INVALID_PRODUCER_EPOCH
    assert write(again, b"next", **own, sequence=12) == (Error.NONE, 13)


def test_an_epoch_that_only_a_marker_tells_fences_the_epoch_before(driver: Durable, restart: Restart) -> None:
    """transaction.version=2: the marker has the next epoch, with which the producer has written nothing."""
    producer = TransactionalProducer(driver)
    producer.add()
    write_in(producer, b"1")
    before: dict[str, Any] = {"producer_id": producer.producer_id, "epoch": producer.epoch}
    assert producer.end(version=5) is Error.NONE
    again = restart(driver)
    assert write(again, b"late", **before, sequence=1)[0] is Error.INVALID_PRODUCER_EPOCH
    producer.driver = again
    producer.add()
    write_in(producer, b"2")
    assert producer.end(version=5) is Error.NONE
    assert committed(again) == [b"1", b"2"]


# transactions


@pytest.mark.parametrize("ends", ["in front of the pass", "behind the pass"])
def test_aborted_records_behind_the_cleaned_part_stay_hidden(
    driver: Durable, restart: Restart, ends: str
) -> None:
    """A pass cleans whole segments in front of the first open transaction. It does not touch the aborted
    records behind them, which are hidden by the log's list of aborted transactions alone."""
    compact(driver)
    for value in (b"1", b"2"):
        write(driver, value)
    driver.now_ms += 2_000
    write(driver, b"other", key=b"another")
    producer = TransactionalProducer(driver)
    producer.add()
    write_in(producer, b"aborted")
    if ends == "in front of the pass":
        producer.end(commit=False)
    driver.advance(20_000)
    if ends == "behind the pass":
        producer.end(commit=False)
    assert fetch(driver, 12, 0).records[:8] == (1).to_bytes(8, "big"), "the record at 0 was cleaned away"
    assert committed(driver) == [b"2", b"other"]
    assert committed(restart(driver)) == [b"2", b"other"]


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_hides_all_behind_it_until_it_ends(
    driver: Durable, restart: Restart, commit: bool
) -> None:
    write(driver, b"before")
    producer = TransactionalProducer(driver)
    producer.add()
    write_in(producer, b"first")
    transact(driver, b"other", commit=True, name="second")
    again = restart(driver)
    assert committed(again) == [b"before"]
    producer.driver = again
    write_in(producer, b"second")
    assert committed(again) == [b"before"]
    assert producer.end(commit=commit) is Error.NONE
    hidden = [] if commit else [b"first", b"second"]
    values = [one for one in (b"before", b"first", b"other", b"second") if one not in hidden]
    assert committed(again) == values
    assert committed(restart(again)) == values


def test_a_transaction_times_out_after_a_restart_as_it_would_have(driver: Durable, restart: Restart) -> None:
    """transaction.timeout.ms counts from the transaction's begin; timeouts are checked every 10 s."""
    producer = TransactionalProducer(driver)
    producer.init(timeout_ms=25_000)
    producer.add()
    write_in(producer, b"aborted")
    driver.advance(12_000)
    write(driver, b"other")
    again = restart(driver)
    again.advance(8_000)
    assert committed(again) == []
    again.advance(20_000)
    assert committed(again) == [b"other"]
    producer.driver = again
    assert producer.add() is Error.PRODUCER_FENCED


def test_the_repeated_end_behind_the_last_epoch_names_the_new_producer_id(
    driver: Durable, restart: Restart
) -> None:
    """Epochs end at 32766: the end of a transaction in the last one gives another producer id."""
    producer = TransactionalProducer(driver)
    known = driver.broker.state.transactions.get("t")
    assert known is not None
    known.epoch = producer.epoch = 2**15 - 2
    producer.add()
    before = producer.producer_id, producer.epoch
    assert producer.end(version=5) is Error.NONE
    after = producer.producer_id, producer.epoch
    assert after != before
    producer.driver = restart(driver)
    producer.producer_id, producer.epoch = before
    assert producer.end(version=5) is Error.NONE
    assert (producer.producer_id, producer.epoch) == after


# where a log begins and ends, and what is clean


@pytest.mark.parametrize("before", [3, 4])
def test_a_log_begins_and_ends_where_it_did(driver: Durable, restart: Restart, before: int) -> None:
    """DeleteRecords: into the middle of a batch, and of all that is there."""
    for _ in range(2):
        write(driver, b"1", b"2")
    assert delete_records(driver, 2, before) == (Error.NONE, before)
    again = restart(driver)
    assert (list_offsets(again, 7, -2).offset, list_offsets(again, 7, -1).offset) == (before, 4)
    assert fetch(again, 12, before - 1).error_code == Error.OFFSET_OUT_OF_RANGE
    assert write(again, b"3") == (Error.NONE, 4)
    assert list_offsets(restart(again), 7, -2).offset == before


def test_what_is_clean_stays_clean(driver: Durable, restart: Restart) -> None:
    """Only what was written since the last pass counts as dirty: too little for another one."""
    compact(driver, min_cleanable_dirty_ratio="0.5")
    write(driver, b"old")
    for number in range(10):
        write(driver, b"%d" % number, key=b"%d" % number)
    for value in (b"new", b"newest"):
        driver.advance(20_000)
        write(driver, value)
    again = restart(driver)
    values = committed(again)
    assert [values[0], *values[-2:]] == [b"old", b"new", b"newest"]
    again.advance(40_000)
    assert committed(again) == values
    assert alter_configs(again, 1, ("min.cleanable.dirty.ratio", 0, "0.0")) is Error.NONE
    again.advance(20_000)
    assert committed(again)[0] == b"0", "it is the ratio that has held the pass back"


def test_segments_go_on(driver: Durable, restart: Restart) -> None:
    """The active segment is not compacted, and ends segment.ms behind its first record."""
    compact(driver)
    for value in (b"1", b"2"):
        write(driver, value)
    again = restart(driver)
    again.now_ms += 1_001
    write(again, b"3")
    third = restart(again)
    write(third, b"4")
    third.advance(20_000)
    assert committed(third) == [b"2", b"3", b"4"]
