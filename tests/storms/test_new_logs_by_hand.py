"""Positions at the very beginning of a log, and of an owner whose partition is created anew."""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.randomness import Stream
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.record_positions import Records, Work, lag
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes

SECOND = 1_000_000
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def owner(rates: Mapping[TopicPartition, int], process_ms: int) -> tuple[Records, Work]:
    """A process that looks every 100 ms at logs with these numbers of records a second, and their records."""
    logs = RecordLogs(lambda partition: ((0, rates[partition] * 1_000),))
    times = RecordTimes(distributions.parse("process_ms", process_ms), 1, Stream(1, "records", "m", 1))
    interval = distributions.parse("poll_interval_ms", 100)
    records = Records(logs)
    loop = PollLoop(logs, PollSettings(500, 500, 1_000_000, interval, 60 * SECOND), times)
    return records, Work(records, "a", loop)


def test_an_owner_goes_on_in_the_log_that_is_created_anew_under_its_partitions_name() -> None:
    """100 records a second. At 20.05 s the log is created anew; 9.95 s later it holds 995 records, and the
    looks since the creation came every 100 ms, the last one before that 50 ms ago: it found 990."""
    records, work = owner({P0: 100, P1: 100}, process_ms=0)
    work.start((P0, P1), (0, 0), 0)
    created_us, later_us = 20_050_000, 30_000_000
    records.created((P0,), created_us)
    assert work.position(P0, created_us) == 0
    assert 980 <= work.position(P0, later_us) <= 995
    assert 2_980 <= work.position(P1, later_us) <= 3_000
    assert work.partitions == (P0, P1)


def test_a_single_record_that_was_processed_counts_as_reached() -> None:
    records, _ = owner({P0: 100}, process_ms=0)
    records.note(P0, 1)
    assert records.reached(P0, 0) == 1
    assert lag(records, [], (P0,), SECOND) == 99


def test_the_lag_of_a_partition_that_nobody_has_processed_is_its_whole_log() -> None:
    records, _ = owner({P0: 100, P1: 7}, process_ms=0)
    assert lag(records, [], (P0, P1), SECOND) == 107


def test_the_first_record_counts_as_lag_until_it_is_processed() -> None:
    """The only record, which arrives at 1 s, takes 10 s. It is done at 11 s and a look."""
    records, work = owner({P0: 1}, process_ms=10_000)
    work.start((P0,), (0,), 0)
    assert work.position(P0, 5 * SECOND) == 0
    assert lag(records, [work], (P0,), 5 * SECOND) == 5
    assert lag(records, [work], (P0,), 12 * SECOND) == 11
