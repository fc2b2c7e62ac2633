"""Which part of a log is compacted, and when (LogCleanerManager, LogSegment.shouldRoll)."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.broker.log.partition import Segments
from groupstorm.broker.topic_configs import LogSettings
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.asking import alter_configs, describe_configs, fetch, list_offsets, produce
from tests.broker.compaction.reading import NOW_MS, append, clean, compacted_log, offsets, settings
from tests.broker.driver import Driver


def bases(configs: LogSettings, *batches: tuple[int, int]) -> list[int]:
    """Where segments begin among batches of one record, each of a size and a time."""
    segments = Segments()
    for offset, (size, time_ms) in enumerate(batches):
        segments.appending(offset, size, time_ms, configs)
    return segments.bases


@pytest.mark.parametrize(
    ("bytes_most", "ms_most", "batches", "expected"),
    [
        (100, 10**9, [(60, 0), (40, 0), (1, 0)], [0, 2]),
        (100, 10**9, [(60, 0), (41, 0)], [0, 1]),
        (100, 10**9, [(500, 0), (500, 0)], [0, 1]),
        (10**6, 50, [(1, 1000), (1, 1050), (1, 1051), (1, 1101), (1, 1102)], [0, 2, 4]),
        (10**6, 50, [(1, 1000), (1, 900), (1, 1040)], [0]),
        (10**6, 50, [(1, -1), (1, 900), (1, 10_000)], [0]),
    ],
)
def test_segments_begin_by_size_and_by_the_records_own_time(
    bytes_most: int, ms_most: int, batches: list[tuple[int, int]], expected: list[int]
) -> None:
    assert bases(settings(segment_bytes=bytes_most, longest_segment_ms=ms_most), *batches) == expected


def test_segments_in_front_of_the_log_are_forgotten() -> None:
    segments = Segments()
    for offset in range(5):
        segments.appending(offset, 100, 0, settings(segment_bytes=1))
    segments.begin_at(3)
    assert segments.bases == [3, 4]
    segments.begin_at(9)
    assert segments.bases == [9]


@pytest.mark.parametrize(("ratio", "is_due"), [(0.0, True), (0.49, True), (0.5, False), (0.51, False)])
def test_a_log_is_due_if_more_than_a_part_of_its_bytes_is_dirty(ratio: float, is_due: bool) -> None:
    log = compacted_log(min_cleanable_dirty_ratio=0.0)
    append(log, (b"a", b"1"))
    append(log, (b"b", b"1"))
    clean(log)
    append(log, (b"c", b"1"))
    log.settings.min_cleanable_dirty_ratio = ratio
    part = log.cleanable(NOW_MS)
    assert (part.first_dirty_offset, part.end_offset, part.dirty_ratio) == (1, 2, 0.5)
    assert part.is_due(log.settings) is is_due


def test_nothing_is_younger_than_min_compaction_lag_ms() -> None:
    log = compacted_log(min_compaction_lag_ms=1000)
    for number in range(5):
        append(log, (b"a", b"%d" % number), now_ms=NOW_MS + 400 * number)
    assert not clean(log, NOW_MS + 999)
    assert clean(log, NOW_MS + 1400)
    assert offsets(log) == [1, 2, 3, 4], "the records of 0 and 400 ms are a second old"
    assert clean(log, NOW_MS + 9000)
    assert offsets(log) == [3, 4]


def test_few_records_are_compacted_after_max_compaction_lag_ms() -> None:
    log = compacted_log(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    append(log, (b"a", b"1"), now_ms=NOW_MS)
    append(log, (b"a", b"2"), now_ms=NOW_MS + 1)
    append(log, (b"b", b"1"), now_ms=NOW_MS + 2)
    assert not clean(log, NOW_MS + 1000)
    assert clean(log, NOW_MS + 1001)
    assert offsets(log) == [1, 2]
    assert not clean(log, NOW_MS + 10**6), "the active segment is never overdue"


def test_a_segment_of_a_compacted_topic_is_at_most_as_long_as_its_lag(driver: Driver) -> None:
    """LogConfig.maxSegmentMs."""
    log = driver.broker.state.topics.partition("orders", 0)
    assert log is not None
    for configs, expected in (
        ({"segment.ms": "5000"}, 5000),
        ({"max.compaction.lag.ms": "3000"}, 5000),
        ({"cleanup.policy": "compact"}, 3000),
        ({"segment.ms": "2000"}, 2000),
    ):
        alter_configs(driver, 1, *((name, 0, value) for name, value in configs.items()))
        assert log.settings.longest_segment_ms == expected


# the broker


def compacted(driver: Driver, **more: str) -> Driver:
    """``orders`` is compacted; a segment lasts a second of the records' time."""
    configs = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"} | {
        name.replace("_", "."): value for name, value in more.items()
    }
    assert alter_configs(driver, 1, *((name, 0, value) for name, value in configs.items())) is Error.NONE
    return driver


def write(driver: Driver, key: bytes, value: bytes | None, after_ms: int) -> None:
    data = wire.batch([value], keys=[key], timestamp_ms=NOW_MS + after_ms)
    assert produce(driver, 9, records=data).error_code == Error.NONE


def stored_offsets(driver: Driver) -> list[int]:
    data, found = fetch(driver, 12, 0).records, []
    while data:
        found.append(int.from_bytes(data[:8], "big"))
        data = data[12 + int.from_bytes(data[8:12], "big") :]
    return found


def test_the_cleaner_looks_every_log_cleaner_backoff_ms(driver: Driver) -> None:
    compacted(driver)
    for number in range(3):
        write(driver, b"a", b"%d" % number, 2000 * number)
    driver.advance(14_999)
    assert stored_offsets(driver) == [0, 1, 2]
    driver.advance(1)
    assert stored_offsets(driver) == [1, 2]
    assert (list_offsets(driver, 7, -2).offset, list_offsets(driver, 7, -1).offset) == (0, 3)
    write(driver, b"a", b"3", 6000)
    driver.advance(14_999)
    assert stored_offsets(driver) == [1, 2, 3]
    driver.advance(1)
    assert stored_offsets(driver) == [2, 3]


def test_every_log_that_is_due_is_compacted_at_once_the_dirtiest_first() -> None:
    driver = Driver({"log.cleaner.backoff.ms": "1000", "log.cleanup.policy": "compact,delete"}, {"orders": 3})
    compacted(driver)
    for partition in range(3):
        for number in range(2 + partition):
            data = wire.batch([b"v"], keys=[b"a"], timestamp_ms=NOW_MS + 2000 * number)
            produce(driver, 9, partition, records=data)
    driver.advance(1000)
    topic = driver.broker.state.topics.get("orders")
    assert topic is not None
    assert [len(log.batches) for log in topic.partitions] == [2, 2, 2]
    assert [log.first_dirty_offset for log in topic.partitions] == [1, 2, 3]


def test_a_broker_without_compacted_topics_has_no_timer_for_them(driver: Driver) -> None:
    produce(driver, 9)
    before = driver.broker.next_deadline()
    assert before == driver.now_ms + 300_000
    compacted(driver)
    assert driver.broker.next_deadline() == driver.now_ms + 15_000
    alter_configs(driver, 1, ("cleanup.policy", 1, None))
    assert driver.broker.next_deadline() == before


@pytest.mark.parametrize(
    ("policy", "left"), [("compact", 3), ("delete", 0), ("compact,delete", 0), ("delete,compact", 0)]
)
def test_retention_is_for_topics_whose_policy_has_delete(driver: Driver, policy: str, left: int) -> None:
    alter_configs(driver, 1, ("cleanup.policy", 0, policy), ("retention.ms", 0, "1000"))
    for number in range(3):
        write(driver, b"%d" % number, b"v", 0)
    driver.advance(300_000)
    assert len(stored_offsets(driver)) == left


def test_the_brokers_settings_are_the_topics_defaults() -> None:
    driver = Driver(
        {
            "log.cleanup.policy": "compact",
            "log.cleaner.min.cleanable.ratio": "0.1",
            "log.segment.bytes": "2000000",
        },
        {"orders": 1},
    )
    described: dict[str, Any] = {one.name: one for one in describe_configs(driver, 4).configs}
    assert described["cleanup.policy"].value == "compact"
    assert described["min.cleanable.dirty.ratio"].value == "0.1"
    assert described["segment.bytes"].value == "2000000"
    assert [one.name for one in described["segment.bytes"].synonyms] == ["log.segment.bytes"] * 2
    log = driver.broker.state.topics.partition("orders", 0)
    assert log is not None
    assert (log.settings.is_compacted, log.settings.is_deleted, log.settings.segment_bytes) == (
        True,
        False,
        2_000_000,
    )
