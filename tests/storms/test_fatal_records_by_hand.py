"""Which record kills the process that works on it, and when, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario.slow_record_settings import read_slow_records
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.slow_records import FatalRecords, SlowRecordTimes
from tests.storms.test_clients_by_hand import until

MS, SECOND = 1_000, 1_000_000
TP, OTHER = (TopicPartition("topic-0", number) for number in range(2))


class World:
    """A process is at offset 7 of a partition from the beginning. The record of this offset arrives at
    ``arrives_us`` and kills after a second of work."""

    def __init__(self, arrives_us: int) -> None:
        self.clock = Clock()
        self.crashes: list[tuple[int, str, TopicPartition]] = []
        self._work = SimpleNamespace(owner="member-0", position=lambda *_: 7)
        self._holders = {TP: [self._work]}
        logs = SimpleNamespace(end=lambda _, now_us: 7 if now_us < arrives_us else 8)
        records: Any = SimpleNamespace(holders=self._holders, logs=logs)
        times: Any = SimpleNamespace(fatal={TP: (7, SECOND)})
        FatalRecords(self.clock, records, times, self._crash)

    def _crash(self, name: str, partition: TopicPartition) -> None:
        self.crashes.append((self.clock.now_us, name, partition))
        self._holders[TP].remove(self._work)


def test_the_owner_dies_when_it_was_seen_at_work_for_the_time_of_the_record() -> None:
    """The world looks every half a second: it sees the owner at work at 0.5 s first."""
    world = World(arrives_us=0)
    until(world.clock, 10 * SECOND)
    assert world.crashes == [(1_500 * MS, "member-0", TP)]


def test_an_owner_that_waits_for_the_record_does_not_work_on_it() -> None:
    """It arrives at 2.2 s; the owner is seen at work at 2.5 s first."""
    world = World(arrives_us=2_200 * MS)
    until(world.clock, 10 * SECOND)
    assert world.crashes == [(3_500 * MS, "member-0", TP)]


def test_in_a_log_that_is_created_anew_another_record_arrives_at_the_time_of_an_entry() -> None:
    """A thousand a second: at two minutes 120,000 have arrived, or 60,000 if the log begins at one."""
    logs = RecordLogs(lambda _: ((0, 1_000_000),))
    entries = [{"partition": 0, "at": "2m", "takes": "1s", "then": "crash"}]
    times = SlowRecordTimes(read_slow_records("x", entries), logs)
    assert times.fatal == {TP: (120_000, SECOND)}
    logs.create(TP, 60 * SECOND)
    times.created((OTHER, TP))
    assert times.fatal == {TP: (60_000, SECOND)}
    assert times.next_offset(TP, 0) == 60_000
    assert times.extra_us(TP, 120_000, 120_001) == ()


def test_the_work_on_a_record_that_kills_has_no_end_for_a_hundred_days() -> None:
    entries = [{"partition": 0, "offset": 7, "takes": "1s", "then": "crash"}]
    times = SlowRecordTimes(read_slow_records("x", entries), RecordLogs(lambda _: ((0, 1_000_000),)))
    assert times.extra_us(TP, 0, 100) == ((7, 100 * 86_400 * SECOND),)


def test_the_record_of_time_0_is_the_first_of_the_log() -> None:
    """A record arrives every microsecond."""
    entries = [{"partition": 0, "at": 0, "takes": "1s"}]
    times = SlowRecordTimes(read_slow_records("x", entries), RecordLogs(lambda _: ((0, 1_000_000_000),)))
    assert times.next_offset(TP, 0) == 0
