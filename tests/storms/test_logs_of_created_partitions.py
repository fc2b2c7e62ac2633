"""The log of a partition that is created during a run is empty then, as a broker's is."""

from __future__ import annotations

from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.records.positions import Records, Work
from groupstorm.storms.scenario.member_rules import read_slow_records
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import SlowRecordTimes
from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm
from tests.storms.test_poll_loop import loop

P0, P1 = TopicPartition("topic-0", 0), TopicPartition("topic-0", 1)
SECOND = 1_000_000
#: 100 records a second, then none from 20 s on, then 10 a second from 30 s on.
RATES = ((0, 100_000), (20 * SECOND, 0), (30 * SECOND, 10_000))


# --- in storms

CREATE = {"at_ms": 60_000, "do": "create-topic", "topic": "topic-new", "partitions": 2}
SETTINGS: dict[str, Any] = {
    **FIXED, "members": 2, "partitions": 2, "record_rate": 100, "process_ms": 0.1,
    "metadata.max.age.ms": 30_000, "partition.assignment.strategy": ["cooperative-sticky"],
}  # fmt: skip
NEW = ("topic-new-0", "topic-new-1")


def begun(result: Storm, name: str, after_us: int) -> list[tuple[int, int]]:
    """When owners took a partition, and where they began."""
    return [
        (at_us, event.positions[event.partitions.index(name)])
        for at_us, event in result.events("partitions_assigned")
        if at_us > after_us and name in event.partitions
    ]


def test_the_trace_says_that_the_logs_of_a_created_topic_are_empty() -> None:
    """auto.offset.reset=latest: an owner begins behind the records that came since the creation."""
    result = storm(scenario([START, CREATE], **SETTINGS, topic_pattern="topic-.*"))
    [(at_us, rates)] = [found for found in result.events("record_rates_changed") if found[0] > 0]
    assert (at_us, rates.partitions, rates.positions, rates.rates) == (
        60 * SECOND,
        NEW,
        (0, 0),
        (100_000, 100_000),
    )
    for name in NEW:
        [(taken_us, position)] = begun(result, name, 0)
        assert taken_us > 60 * SECOND
        assert position == (taken_us - 60 * SECOND) // 10_000


def test_partitions_that_are_added_begin_empty_too() -> None:
    grow = {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 4}
    result = storm(scenario([START, grow], **SETTINGS))
    [(at_us, rates)] = [found for found in result.events("record_rates_changed") if found[0] > 0]
    assert (at_us, rates.partitions, rates.positions) == (60 * SECOND, ("topic-0-2", "topic-0-3"), (0, 0))


def test_without_records_a_created_topic_changes_no_rate() -> None:
    settings = {**SETTINGS, "record_rate": 0}
    assert not storm(scenario([START, CREATE], **settings, topic_pattern="topic-.*")).events(
        "record_rates_changed"
    )


def test_a_topic_that_is_created_again_is_un_owned_from_its_creation_on_and_has_other_records() -> None:
    """It is deleted at 60 s, and nobody owns its partitions when it is created again at 100 s: members see it
    at a refresh within 30 s, and their rounds take milliseconds. With auto-commit they would go on trying
    to commit offsets of the deleted topic."""
    settings = {**SETTINGS, "topics": 2, "topic_pattern": "topic-.*", "commits": "never"}
    again = {**CREATE, "at_ms": 100_000, "topic": "topic-1"}
    steps = [START, {"at_ms": 60_000, "do": "delete-topic", "topic": "topic-1"}, again]
    result = storm(scenario(steps, **settings))
    names = ("topic-1-0", "topic-1-1")
    [(created_us, created)] = result.events("partitions_created")
    assert (created_us, created.partitions) == (100 * SECOND, names)
    waits_us = 0
    for name in names:
        [(taken_us, position)] = begun(result, name, 60 * SECOND)
        assert 100 * SECOND < taken_us <= 131 * SECOND
        assert position == (taken_us - 100 * SECOND) // 10_000
        waits_us += taken_us - 100 * SECOND
    before = storm(scenario(steps[:2], **settings)).figures
    waited_s = (result.figures.unowned_partition_seconds or 0) - (before.unowned_partition_seconds or 0)
    assert abs(waited_s - waits_us / SECOND) < 0.1
    assert result.broken == {}


def test_an_owner_goes_on_in_the_new_log_of_a_topic_that_is_created_again_at_once() -> None:
    """The owner keeps the partition by its name. Its next fetch gets OFFSET_OUT_OF_RANGE, and it commits
    offsets of the new log: of the 140 s until its process dies there are 14,000 records at most."""
    steps = [
        START,
        {"at_ms": 60_000, "do": "delete-topic", "topic": "topic-1"},
        {**CREATE, "topic": "topic-1"},
        {"at_ms": 200_000, "do": "stop", "members": [0]},
    ]
    for exact in (False, True):
        result = storm(scenario(steps, **SETTINGS, topics=2, tail_ms=20_000), exact=exact)
        given = [each for name in ("topic-1-0", "topic-1-1") for each in begun(result, name, 200 * SECOND)]
        assert given, "the other member takes over what the stopped one had"
        for taken_us, position in given:
            assert 13_900 <= position <= (taken_us - 60 * SECOND) // 10_000
    assert result.broken == {}


# --- what belongs to logs


def records_and_work() -> tuple[Records, Work, PollLoop]:
    ours = loop({P0: ((0, 1_000_000),), P1: ((0, 1_000_000),)})
    records = Records(RecordLogs(lambda _: ((0, 1_000_000),)))
    return records, Work(records, "m", ours, "latest"), ours


def test_a_committed_offset_beyond_the_end_of_the_log_is_out_of_range() -> None:
    records, work, _ = records_and_work()
    records.created((P0,), 8 * SECOND)
    assert work.start((P0, P1), (2_001, 2_001), 10 * SECOND) == (2_000, 2_001)
    other = Work(records, "other", loop({P0: RATES, P1: RATES}), "earliest")
    assert other.start((P0,), (2_000,), 10 * SECOND) == (2_000,)
    assert other.start((P1,), (0,), 10 * SECOND) == (0,)


def test_a_partition_that_stands_still_does_so_in_its_new_log() -> None:
    records, work, _ = records_and_work()
    work.start((P0, P1), (-1, -1), 0)
    work.stop((P0,), 10 * SECOND)
    records.created((P0, P1), 20 * SECOND)
    assert work.stands_still(P0)
    assert not work.stands_still(P1)
    assert work.position(P0, 30 * SECOND) == 0
    assert work.positions(20 * SECOND) == {P0: 0, P1: 0}


def test_a_slow_record_is_the_first_one_that_arrives_then_in_a_log_that_began_later() -> None:
    """100 records a second from 10 s on: at 15 s the record of offset 500 is the next one."""
    logs = RecordLogs(lambda _: ((0, 100_000),))
    entries = [
        {"topic": "topic-0", "partition": 0, "at": "15s", "takes": "2s"},
        {"topic": "topic-0", "partition": 0, "at": "5s", "takes": "3s", "then": "crash"},
        {"topic": "topic-0", "partition": 0, "offset": 7, "takes": "4s"},
        {"topic": "topic-0", "partition": 1, "at": "5s", "takes": "1s"},
    ]
    times = SlowRecordTimes(read_slow_records("x", entries), logs)
    assert [offset for offset, _ in times.extra_us(P0, 0, 9_000)] == [7, 500, 1_500]
    assert times.fatal == {P0: (500, 3 * SECOND)}
    logs.create(P0, 10 * SECOND)
    times.created((P0, TopicPartition("topic-0", 5)))
    assert [offset for offset, _ in times.extra_us(P0, 0, 9_000)] == [0, 7, 500]
    assert times.fatal == {P0: (0, 3 * SECOND)}
    assert times.extra_us(P1, 0, 9_000) == ((500, SECOND),)
