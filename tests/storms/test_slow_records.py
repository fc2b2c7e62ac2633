"""Records on which an application works for long, and records that kill it; machines; garbage collections."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.scenario.member_rules import read_slow_records
from groupstorm.storms.world.record_times import SlowRecordTimes
from tests.soaking import one_in
from tests.storms.storms_in_memory import Storm, scenario, storm

SECOND = 1_000_000
START = {"at_ms": 0, "do": "start"}
FIXED = {
    "members": 2, "partitions": 2, "net_latency_ms": 1, "process_ms": 1, "record_rate": 10,
    "start_ms": {"exactly": 1000}, "least_duration_ms": 400_000,
    "partition.assignment.strategy": ["cooperative-sticky"], "if_never_settled": "report",
}  # fmt: skip
TP = TopicPartition("topic-0", 0)


def with_record(entry: dict[str, Any], **settings: Any) -> Storm:
    return storm(scenario([START], **{**FIXED, **settings}, slow_records=[{"partition": 0, **entry}]))


def times(*entries: dict[str, Any]) -> SlowRecordTimes:
    return SlowRecordTimes(read_slow_records("x", list(entries)), RecordLogs(lambda _: ((0, 1_000_000),)))


def test_a_single_record_by_offset_or_by_time_and_every_so_many() -> None:
    found = times({"partition": 0, "offset": 7, "takes": "2s"}, {"every": 5, "takes": "1s"})
    assert found.extra_us(TP, 0, 11) == ((0, SECOND), (5, SECOND), (7, 2 * SECOND), (10, SECOND))
    assert found.extra_us(TopicPartition("topic-0", 1), 6, 10) == ()
    assert [found.next_offset(TP, first) for first in (0, 1, 6, 8)] == [0, 5, 7, 10]
    # A thousand records a second: the first one that arrives after two minutes.
    assert times({"partition": 0, "at": "2m", "takes": 5}).next_offset(TP, 0) == 120_000


def test_attempts_pauses_and_the_dead_letter_add_up() -> None:
    entry = {"partition": 0, "offset": 0, "takes": "10s", "retries": 2, "pause": "3s"}
    assert times(entry).extra_us(TP, 0, 1) == ((0, 36 * SECOND),)
    assert times({**entry, "then": "dead-letter"}).extra_us(TP, 0, 1) == ((0, 46 * SECOND),)


def test_a_slow_record_holds_its_own_partition_up_and_no_other() -> None:
    figures = with_record({"at": "1m", "takes": "100s"}).figures
    assert figures.generations == 1
    assert figures.staleness_max_seconds == pytest.approx(100, abs=2)
    assert figures.lag_peak == pytest.approx(1000, abs=30), "ten records a second for 100 s"


@pytest.mark.parametrize("exact", one_in(2, [False, True]))
def test_a_record_slower_than_the_poll_interval_costs_a_membership_each_time_it_is_met(exact: bool) -> None:
    """The owner leaves after 60 s; the record follows its partition to the next owner, who leaves, too."""
    settings = {**FIXED, "max.poll.interval.ms": 60_000}
    what = scenario([START], **settings, slow_records=[{"partition": 0, "at": "1m", "takes": "100s"}])
    left = [at_us for at_us, event in storm(what, exact=exact).events("member_removed", cause="left")]
    assert left[0] == pytest.approx(120 * SECOND, abs=SECOND)
    assert len(left) > 3
    assert all(55 * SECOND < later - earlier < 130 * SECOND for earlier, later in pairwise(left))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_polls_too_late_works_on_its_record_beside_the_next_owner(protocol: str) -> None:
    """It leaves 60 s after its poll(), and works on for 40 s; the next owner has the time that it takes."""
    own = [{"members": [1], "settings": {"max.poll.interval.ms": 200_000}}]
    settings = {"max.poll.interval.ms": 60_000, "group.protocol": protocol, "member_settings": own}
    record = {"at": "1m", "takes": "100s"}
    figures = with_record(record, **settings, **{"heartbeat.interval.ms": 1_000}).figures
    assert figures.dual_owner_seconds is not None
    assert 30 < figures.dual_owner_seconds < 40, "until the next owner has it"


def test_a_record_that_kills_follows_its_partition_until_nobody_is_left() -> None:
    entry = {"at": "1m", "takes": "1s", "then": "crash"}
    alone = with_record(entry)
    assert len(alone.events("member_crashed")) == 2
    again = with_record(entry, restart_failed=True)
    assert len(again.events("member_crashed")) > 3
    assert len(again.events("step_taken", cause="restart-failed")) > 3


def test_a_machine_makes_its_members_slower() -> None:
    """20 ms a record and ten records a second are a fifth of a member's time, ten times that are too much."""
    settings = {**FIXED, "process_ms": 20, "settle_timeout_ms": 0, "least_duration_ms": 100_000}
    machines = [{"members": [1], "factor": 10}]
    slow = storm(replace(scenario([START], **settings, machines=machines), figures_from=10_000))
    quick = storm(replace(scenario([START], **settings), figures_from=10_000))
    assert (quick.figures.lag_peak or 0) < 20
    # 100 s at 10 a second, of which a member with 200 ms a record processes 5 a second.
    assert slow.figures.lag_peak == pytest.approx(500, abs=60)
