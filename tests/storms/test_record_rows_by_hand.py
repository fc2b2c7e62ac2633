"""What a trace says of logs and of members' processing, and the positions behind it, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.processing_rates import ProcessingRates
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.record_positions import Records, Work, lag
from groupstorm.storms.record_rate_rows import RecordRateRows
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.world.clock import Clock
from groupstorm.storms.world.poll_loop import PollLoop
from tests.storms.storms_in_memory import START, scenario, storm
from tests.storms.test_clients_by_hand import until
from tests.storms.test_consumer_group_by_hand import ADD, COMMITS
from tests.storms.test_poll_loop import loop
from tests.storms.transcript import WORLD

SECOND = 1_000_000
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
#: Per 1,000 seconds: 100 and 2,000 records a second.
SLOWLY, FAST = 100_000, 2_000_000


# --- processing: a record takes 1 ms, and a poll brings up to 500


class Member:
    """A member whose rows are kept: seconds, partitions, positions, rates."""

    def __init__(self, ours: PollLoop) -> None:
        self.clock = Clock()
        self.loop = ours
        self.rows: list[tuple[int, tuple[str, ...], tuple[int, ...], tuple[int, ...]]] = []
        self.rates = ProcessingRates(self.clock, ours, lambda *row: self.rows.append((self.now_s, *row)))

    @property
    def now_s(self) -> int:
        return self.clock.now_us // SECOND

    def own(self, *partitions: TopicPartition, positions: tuple[int, ...] = (0,)) -> None:
        self.loop.own(partitions, positions, self.clock.now_us)

    def to(self, seconds: int) -> None:
        until(self.clock, seconds * SECOND)


def test_a_member_that_catches_up_gets_the_rate_that_leads_there() -> None:
    """1,000 records wait at 10 s. Two polls of 500 take until 11 s, when the third one takes the rest: 1,000
    records within a second, and the 100 a second that arrive meanwhile."""
    member = Member(loop({P0: ((0, SLOWLY),)}))
    member.to(10)
    member.own(P0)
    member.rates.changed(began=True)
    assert member.rows == [(10, ("t-0",), (0,), (1_100_000,))]
    member.to(100)
    assert len(member.rows) == 1, "it keeps up from then on"
    member.rates.finish()
    assert len(member.rows) == 1


def test_a_member_that_keeps_up_has_ten_times_the_rate_of_its_log_to_spare_at_most() -> None:
    """It begins at the end of a log that grows by a record in 10 s: 100 per 1,000 s. It could process 999,900
    more. The least that a row adds is 1,000, and no row adds more than 9 times the rate and 1,000,000."""
    member = Member(loop({P0: ((0, 100),)}))
    member.to(100)
    member.own(P0, positions=(10,))
    member.to(101)
    member.rates.changed(began=True)
    assert member.rows == [(101, ("t-0",), (10,), (100 + 999_900,))]
    quick = Member(loop({P0: ((0, 100),)}, process_ms=0.1))
    quick.to(100)
    quick.own(P0, positions=(10,))
    quick.to(101)
    quick.rates.changed(began=True)
    assert quick.rows == [(101, ("t-0",), (10,), (100 + 900 + 1_000_000,))]


def test_a_member_at_its_limit_gets_a_little_more_than_the_rate_of_its_log() -> None:
    """Records arrive as fast as it can process them, and it begins with none waiting."""
    member = Member(loop({P0: ((0, 1_000_000),)}))
    member.to(10)
    member.own(P0, positions=(10_000,))
    member.to(11)
    member.rates.changed(began=True)
    [(_, _, _, (rate,))] = member.rows[:1]
    assert rate == 1_000_000 + 1_000


def test_a_member_that_is_behind_gets_a_row_every_ten_seconds_and_one_at_the_end() -> None:
    """It processes 1,000 records a second, of 2,000 that arrive."""
    member = Member(loop({P0: ((0, FAST),)}))
    member.to(10)
    member.own(P0)
    member.rates.changed(began=True)
    member.to(35)
    behind = [(at_s, ("t-0",), ((at_s - 10) * 1_000,), (1_000_000,)) for at_s in (10, 20, 30)]
    assert member.rows == behind
    member.rates.finish()
    assert member.rows == [*behind, (35, ("t-0",), (25_000,), (1_000_000,))]
    member.to(90)
    assert len(member.rows) == 4, "the run is over"


def test_a_member_that_stands_still_gets_no_rows() -> None:
    member = Member(loop({P0: ((0, FAST),)}))
    member.own(P0)
    member.rates.changed(began=True)
    member.to(5)
    member.rates.stop()
    member.to(50)
    assert [at_s for at_s, *_ in member.rows] == [0]


def test_only_new_partitions_or_positions_need_a_row_of_a_member_that_keeps_up() -> None:
    member = Member(loop({P0: ((0, SLOWLY),), P1: ((0, SLOWLY),)}))
    member.own(P0)
    member.rates.changed(began=True)
    member.to(3)
    member.rates.changed(began=False)
    assert [partitions for _, partitions, *_ in member.rows] == [("t-0",)]
    member.own(P1, positions=(300,))
    member.rates.changed(began=False)
    assert [partitions for _, partitions, *_ in member.rows] == [("t-0",), ("t-0", "t-1")]
    member.to(6)
    member.rates.changed(began=True)
    assert [at_s for at_s, *_ in member.rows] == [0, 3, 6]


@pytest.mark.parametrize("exact", [False, True])
def test_a_member_of_a_consumer_group_that_is_behind_gets_a_row_when_it_stops_with_a_partition(
    exact: bool,
) -> None:
    """It processes 1,000 records a second of both partitions. When it has to give one up, it stops with that
    one at once, and works on the other one alone. The next batch of 500 records takes half a second: the
    callback comes at the poll() behind it."""
    world = WORLD | COMMITS | {"group.protocol": "consumer", "members": 1, "record_rate": 2_000}
    ran = storm(scenario([START, ADD], **world), exact=exact)
    (paused_us, paused), *_ = ran.events("partitions_paused", member="member-0")
    rows = ran.events("processing_rates_changed", member="member-0")
    assert [(row.partitions, row.rates) for at_us, row in rows if at_us == paused_us] == [
        (("topic-0-0",), (1_000_000,))
    ]
    assert paused.partitions == ("topic-0-1",)
    (revoked_us, revoked), *_ = ran.events("partitions_revoked", member="member-0")
    assert (revoked_us - paused_us, revoked.positions) == (500_000, paused.positions)


def test_a_member_that_owns_nothing_has_no_row() -> None:
    member = Member(loop({P0: ((0, SLOWLY),)}))
    member.rates.changed(began=True)
    member.rates.finish()
    assert member.rows == []


def test_a_member_whose_polls_are_more_than_a_second_apart_is_behind_between_two_of_them() -> None:
    """Its looks are 2 s apart: 200 records each. So there is a row every ten seconds."""
    member = Member(loop({P0: ((0, SLOWLY),)}, interval_ms=2_000))
    member.own(P0)
    member.rates.changed(began=True)
    member.to(35)
    assert [at_s for at_s, *_ in member.rows] == [0, 10, 20, 30]
    rarely = Member(loop({P0: ((0, SLOWLY),)}, interval_ms=1_000))
    rarely.own(P0)
    rarely.rates.changed(began=True)
    rarely.to(35)
    assert [at_s for at_s, *_ in rarely.rows] == [0], "a second is still smooth"


# --- logs


class Host:
    """A world of two partitions; ``rates`` are theirs in records per 1,000 s."""

    def __init__(self, record_rate: float, rates: dict[TopicPartition, tuple[tuple[int, int], ...]]) -> None:
        self.settings = Settings(("", {"record_rate": record_rate}))
        self.group = "g"
        self.records = Records(RecordLogs(lambda partition: rates[partition]))
        self.clock = Clock()
        self.partitions = tuple(rates)
        self.rows: list[tuple[int, Any]] = []

    def trace(self, source: object, event: Any) -> None:
        self.rows.append((self.clock.now_us // SECOND, event[1:]))


def test_a_row_names_logs_whose_rate_is_not_the_known_one() -> None:
    host = Host(100, {P0: ((0, SLOWLY), (5 * SECOND, 0), (9 * SECOND, SLOWLY)), P1: ((0, 200_000),)})
    RecordRateRows(host).look()
    until(host.clock, 60 * SECOND)
    assert host.rows == [
        (0, (("t-1",), (0,), (200_000,))),
        (5, (("t-0",), (500,), (0,))),
        (9, (("t-0",), (500,), (SLOWLY,))),
    ]


def test_a_rate_below_a_record_a_second_is_said_in_a_row() -> None:
    host = Host(0.5, {P0: ((0, 500),)})
    RecordRateRows(host).look()
    assert host.rows == [(0, (("t-0",), (0,), (500,)))]


@pytest.mark.parametrize(
    ("record_rate", "now_rate", "said"), [(100, 0, True), (100, SLOWLY, True), (0, 0, False)]
)
def test_a_created_log_is_empty_whatever_was_known_of_its_name(
    record_rate: float, now_rate: int, said: bool
) -> None:
    """A reader would take the log for one that has grown since 0, unless nothing arrives anywhere."""
    host = Host(record_rate, {P0: ((0, now_rate),)})
    rows = RecordRateRows(host)
    rows.look()
    before = len(host.rows)
    host.clock.advance_to(7 * SECOND)
    host.records.created((P0,), 7 * SECOND)
    rows.look((P0,))
    assert host.rows[before:] == ([(7, (("t-0",), (0,), (now_rate,)))] if said else [])


# --- positions


def works(*owners: str) -> tuple[Records, list[Work]]:
    """Owners of a log of 100 records a second, which they process at once."""
    records = Records(RecordLogs(lambda _: ((0, SLOWLY),)))
    rates = {P0: ((0, SLOWLY),), P1: ((0, SLOWLY),)}
    return records, [Work(records, owner, loop(rates, process_ms=0)) for owner in owners]


def test_the_furthest_position_is_that_of_any_owner_present_or_past() -> None:
    records, (first, second) = works("a", "b")
    first.start((P0,), (-1,), 0)
    assert first.drop((P0,), 10 * SECOND + 1) == (1_000,)
    assert records.furthest == {P0: 1_000}
    second.start((P0,), (400,), 10 * SECOND + 1)
    assert records.reached(P0, 10 * SECOND + 1) == 1_000
    # b looks every 100 ms from when it began: the last time before that was at 29.900001 s
    assert records.reached(P0, 30 * SECOND + 1) == 2_990
    records.note(P0, 1_500)
    records.note(P0, 1_200)
    assert records.furthest[P0] == 1_500
    assert records.holders == {P0: [second]}
    assert records.reached(P1, 10 * SECOND) == 0


def test_offsets_of_deleted_partitions_do_not_count_until_they_are_created_again() -> None:
    records, (work,) = works("a")
    records.commit({P0: 5, P1: 6})
    work.start((P1,), (-1,), SECOND)
    work.drop((P1,), 5 * SECOND)
    records.forget((P1,))
    assert (records.committed, records.furthest) == ({P0: 5}, {})
    records.commit({P0: 7, P1: 8})
    assert records.committed == {P0: 7}
    records.created((P1,), 9 * SECOND)
    records.commit({P1: 1})
    assert records.committed == {P0: 7, P1: 1}


def test_who_gives_up_what_it_does_not_have_says_zero() -> None:
    _, (work,) = works("a")
    work.start((P0,), (3,), SECOND)
    assert work.drop((P1,), 2 * SECOND) == (0,)
    assert work.partitions == (P0,)
    assert (P0 in work, P1 in work, work.position(P1, 2 * SECOND)) == (True, False, 0)


def test_the_lag_leaves_out_what_arrived_since_the_last_look_of_an_owner_that_keeps_up() -> None:
    """At 10.05 s each log holds 1,005 records, and the last look was at 10 s. Nobody owns P1, of which 600
    were processed."""
    records, (work,) = works("a")
    work.start((P0,), (0,), 0)
    records.furthest[P1] = 600
    assert lag(records, [work], (P0, P1), 10_050_000) == 405
    assert lag(records, [], (P1,), 10_050_000) == 405
    assert lag(records, [], (), 10_050_000) == 0


def test_the_lag_behind_an_owner_that_does_not_keep_up_counts_from_its_position() -> None:
    """It processes 1,000 of 2,000 records a second, from its second look on, at 0.1 s: the first one found
    none. Another one had come to 500 before."""
    records = Records(RecordLogs(lambda _: ((0, FAST),)))
    slow = Work(records, "a", loop({P0: ((0, FAST),)}))
    slow.start((P0,), (0,), 0)
    records.furthest[P0] = 500
    assert lag(records, [slow], (P0,), 10 * SECOND) == 20_000 - 9_900
    records.furthest[P0] = 12_000
    assert lag(records, [slow], (P0,), 10 * SECOND) == 8_000
    records.furthest[P0] = 30_000
    assert lag(records, [slow], (P0,), 10 * SECOND) == 0


def test_positions_of_partitions_that_stand_still_go_on_where_they_were() -> None:
    _, (work,) = works("a")
    work.start((P0, P1), (0, 0), 0)
    stopped = work.stop((P0,), 10 * SECOND + 1)
    assert stopped == (1_000,)
    assert work.positions(20 * SECOND + 1) == {P0: 1_000, P1: 2_000}
    assert work.resume_some((P0,), 20 * SECOND + 1) == (1_000,)
    assert work.position(P0, 21 * SECOND) > 2_000
