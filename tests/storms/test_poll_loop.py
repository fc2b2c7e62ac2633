"""The poll loop against an application that is played record by record, and what holds of every loop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.records.logs import RecordLogs
from groupstorm.storms.scenario.randomness import Stream, parse_distribution
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes

MS, SECOND = 1_000, 1_000_000
P = tuple(TopicPartition("topic-0", number) for number in range(4))

#: From when on how many records of each partition arrive in 1,000 seconds.
Rates = Mapping[TopicPartition, tuple[tuple[int, int], ...]]

RATES = st.lists(st.sampled_from([0, 7_000, 40_000, 100_000, 333_000]), min_size=4, max_size=4)


def loop(
    rates: Rates,
    *,
    poll_records: int = 500,
    fetch_records: int = 1_000_000,
    run_records: int | None = None,
    interval_ms: object = 100,
    process_ms: object = 1,
    steps: bool = False,
) -> PollLoop:
    """``run_records``: how many a look takes, in polls of ``poll_records``."""
    logs = RecordLogs(lambda tp: rates[tp])
    process, stream = parse_distribution("process_ms", process_ms), Stream(1, "records", "m", 1)
    times = RecordTimes(process, 1, stream)
    interval = parse_distribution("poll_interval_ms", interval_ms)
    polling = PollSettings(poll_records, run_records or poll_records, fetch_records, interval, 60 * SECOND)
    return PollLoop(logs, polling, times, steps)


def both(rates: Rates, **how: Any) -> tuple[PollLoop, PollLoop]:
    """The loop that computes, and the one that takes look by look."""
    return loop(rates, **how), loop(rates, **how, steps=True)


def moments(one: PollLoop, at_us: int) -> tuple[object, ...]:
    """The polls around this time, and whether the application keeps up."""
    return one.next_poll_us(at_us), one.last_poll_us(at_us), one.keeps_up(at_us)


def offsets(one: PollLoop, at_us: int) -> tuple[object, ...]:
    return one.positions(at_us), one.polled_positions(at_us)


class Played:
    """An application of its own: it asks for records one by one and sleeps through each."""

    def __init__(
        self,
        rates: Rates,
        poll_records: int,
        fetch_records: int,
        interval_us: int,
        process_us: int,
        end_us: int,
    ) -> None:
        self.done: dict[TopicPartition, list[int]] = {tp: [] for tp in P}  # when each record was finished
        self.polls: list[int] = []
        arrivals = {
            partition: [
                -(-(offset + 1) * 1_000_000_000 // rate) if (rate := of[0][1]) else end_us
                for offset in range(of[0][1] * end_us // 1_000_000_000)
            ]
            for partition, of in rates.items()
        }
        position = dict.fromkeys(rates, 0)
        line = sorted(rates)
        fetched: list[TopicPartition] = []
        now_us = 0
        while now_us < end_us:
            self.polls.append(now_us)
            batch: list[TopicPartition] = []
            for _ in range(len(line)):
                partition = line[0]
                if not fetched:
                    there = bisect_right(arrivals[partition], now_us) - position[partition]
                    fetched = [partition] * min(there, fetch_records)
                while fetched and len(batch) < poll_records:
                    batch.append(fetched.pop())
                    position[partition] += 1
                if fetched:
                    break
                line.append(line.pop(0))
                if len(batch) == poll_records:
                    break
            begun_us = now_us
            for partition in batch:
                now_us += process_us
                self.done[partition].append(now_us)
            left = sum(bisect_right(arrivals[tp], begun_us) - position[tp] for tp in line)
            if not left and len(batch) < poll_records:
                now_us = max(now_us, begun_us + interval_us)
        self.polls.append(now_us)

    def positions(self, at_us: int) -> dict[TopicPartition, int]:
        return {tp: bisect_right(self.done[tp], at_us) for tp in P}


@settings(deadline=None)
@given(
    RATES,
    st.sampled_from([3, 20, 500]),
    st.sampled_from([5, 1_000]),
    st.sampled_from([20, 100, 700]),
    st.sampled_from([1, 2, 30]),
)
def test_a_loop_does_what_an_application_does_record_by_record(
    arriving: list[int], poll_records: int, fetch_records: int, interval_ms: int, process_ms: int
) -> None:
    rates = {tp: ((0, rate),) for tp, rate in zip(P, arriving, strict=True)}
    played = Played(rates, poll_records, fetch_records, interval_ms * 1000, process_ms * 1000, 8 * SECOND)
    sizes = {"poll_records": poll_records, "fetch_records": fetch_records}
    for ours in both(rates, **sizes, interval_ms=interval_ms, process_ms=process_ms):
        ours.own(P, (0, 0, 0, 0), 0)
        for at_us in range(0, 7 * SECOND, 333_337):
            assert ours.positions(at_us) == played.positions(at_us)
            assert ours.next_poll_us(at_us) == min(poll for poll in played.polls if poll >= at_us)
            assert ours.last_poll_us(at_us) == max(poll for poll in played.polls if poll <= at_us)


ACTIONS = st.lists(
    st.tuples(
        st.integers(1, 3 * SECOND),
        st.sampled_from(["own", "release", "hold", "go on", "stall", "busy", "look"]),
        st.sampled_from(P),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(
    RATES,
    ACTIONS,
    st.sampled_from([1, 5, 500]),
    st.sampled_from([1, 100, {"uniform": [50, 900]}]),
    st.sampled_from([0.5, 5, {"p50": 2, "p95": 30}]),
)
def test_what_happens_is_the_same_by_arithmetic_and_look_by_look(
    arriving: list[int],
    actions: list[tuple[int, str, TopicPartition]],
    poll_records: int,
    interval_ms: object,
    process_ms: object,
) -> None:
    rates = {
        tp: ((0, rate), (4 * SECOND, rate * 2), (9 * SECOND, rate // 3))
        for tp, rate in zip(P, arriving, strict=True)
    }
    logs = RecordLogs(lambda tp: rates[tp])
    lazy, stepped = both(rates, poll_records=poll_records, interval_ms=interval_ms, process_ms=process_ms)
    now_us = 0
    before: dict[TopicPartition, int] = {}
    for after_us, do, partition in actions:
        now_us += after_us
        for each in (lazy, stepped):
            owned = partition in each
            if do == "own" and not owned:
                each.own((partition,), (logs.end(partition, now_us) // 2,), now_us)
            elif do == "release":
                each.release((partition,), now_us)
            elif do == "hold":
                each.hold((partition,), now_us)
            elif do == "go on" and each.held(partition):
                each.go_on((partition,), now_us)
            elif do in ("stall", "busy"):
                each.stall(now_us, 700_000, do == "busy")
        positions = lazy.positions(now_us)
        assert offsets(lazy, now_us) == offsets(stepped, now_us)
        assert moments(lazy, now_us) == moments(stepped, now_us)
        for owned_now, position in positions.items():
            assert position <= max(logs.end(owned_now, now_us), before.get(owned_now, 0))
            if do not in ("own", "release"):
                assert position >= before.get(owned_now, 0), "positions never go back"
        before = positions
        lazy.positions(now_us + 2 * SECOND)
        assert lazy.positions(now_us) == positions, "though more is computed by now"


FULL_RATES = st.lists(st.sampled_from([0, 40_000, 50_000, 99_000, 100_000, 125_000]), min_size=4, max_size=4)
LONG = st.lists(
    st.tuples(st.integers(1, 90 * SECOND), st.sampled_from(["ask", "ask", "hold", "go on", "busy", "own"])),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(
    FULL_RATES,
    LONG,
    st.sampled_from([0, 0, 9_000]),
    st.sampled_from([7, 50, 500]),
    st.sampled_from([5, 60, 1_000_000]),
    st.sampled_from([2, 2.5, 4, 5]),
    st.data(),
)
def test_looks_that_come_again_are_the_same_by_arithmetic_and_look_by_look(
    arriving: list[int],
    actions: list[tuple[int, str]],
    behind: int,
    poll_records: int,
    fetch_records: int,
    process_ms: float,
    data: st.DataObject,
) -> None:
    """Applications that have about all that they can do: 200 to 500 records a second; up to 500 arrive,
    with logs that wait for them and without, over minutes."""
    rates = {tp: ((0, rate),) for tp, rate in zip(P, arriving, strict=True)}
    logs = RecordLogs(lambda tp: rates[tp])
    sizes = {"poll_records": poll_records, "fetch_records": fetch_records}
    lazy, stepped = both(rates, **sizes, process_ms=process_ms)
    now_us = 200 * SECOND
    for each in (lazy, stepped):
        each.own(P, [max(logs.end(tp, now_us) - behind, 0) for tp in P], now_us)
    for after_us, do in actions:
        now_us += after_us
        partition = data.draw(st.sampled_from(P))
        for each in (lazy, stepped):
            if do == "hold":
                each.hold((partition,), now_us)
            elif do == "go on" and each.held(partition):
                each.go_on((partition,), now_us)
            elif do == "busy":
                each.stall(now_us, 700_000, polls=True)
            elif do == "own":
                each.release((partition,), now_us)
                each.own((partition,), (logs.end(partition, now_us),), now_us)
        for at_us in (now_us, now_us - data.draw(st.integers(0, min(after_us, 50 * SECOND)))):
            assert offsets(lazy, at_us) == offsets(stepped, at_us)
        assert lazy.poll_after_us(now_us) == stepped.poll_after_us(now_us)
        assert moments(lazy, now_us) == moments(stepped, now_us)


# -- single questions, by hand: half a record a millisecond arrives, 50 between two polls, of 1 ms each ----

ONE = {P[0]: ((0, 500_000),)}
BOTH = {**ONE, P[1]: ((0, 500_000),)}
#: An instant at which the application polls.
T = 10 * SECOND


def owner(rates: Rates = ONE, **how: Any) -> PollLoop:
    """The owner of these partitions from 0 on."""
    ours = loop(rates, **how)
    ours.own(tuple(rates), [0 for _ in rates], 0)
    return ours


def test_what_is_committed_in_the_background_was_finished_at_the_last_poll() -> None:
    ours = owner()
    assert ours.positions(T + 30 * MS) == {P[0]: 4_980}
    assert ours.polled_positions(T + 30 * MS) == {P[0]: 4_950}


@pytest.mark.parametrize(
    ("now_us", "last_ms", "next_ms"),
    [
        (5_000, 0, 10), (9_999, 0, 10), (10_000, 10, 10), (10_001, 10, 20), (39_999, 30, 40),
        (40_000, 40, 40), (40_001, 40, 100), (49_999, 40, 100),
    ],
)  # fmt: skip
def test_records_of_one_fetch_are_handed_out_in_several_polls(
    now_us: int, last_ms: int, next_ms: int
) -> None:
    """Polls of 10: the first of five comes at T, each is worked on for 10 ms. Times are those after T.

    The work on the fifth ends at 50 ms, but then nothing is left: the interval ends at 100 ms.
    """
    ours = owner(poll_records=10, run_records=1_000)
    assert ours.last_poll_us(T + now_us) == T + last_ms * MS
    assert ours.next_poll_us(T + now_us) == T + next_ms * MS
    assert ours.polled_positions(T + now_us) == {P[0]: 4_950 + last_ms}


def test_an_application_without_partitions_polls_from_when_it_begins() -> None:
    ours = loop(ONE)
    assert ours.last_poll_us(SECOND) is None
    ours.begin(SECOND + 5)
    assert ours.last_poll_us(SECOND + 5) == SECOND + 5
    assert ours.poll_after_us(SECOND + 5) == SECOND + 5 + 100 * MS


def test_an_application_that_does_not_wait_is_inside_poll_while_it_has_nothing_to_do() -> None:
    """It looks every 50 ms; 25 records arrive in between, and take 25 ms."""
    ours = owner(interval_ms=0)
    assert ours.next_poll_us(T + 10 * MS) == T + 25 * MS
    assert ours.next_poll_us(T + 30 * MS) == T + 30 * MS
    assert ours.poll_after_us(T + 30 * MS) == T + 50 * MS


@pytest.mark.parametrize(("process_ms", "keeps_up"), [(1_000, True), (1_000.001, False)])
def test_who_works_for_more_than_a_second_on_what_it_polled_does_not_keep_up(
    process_ms: float, keeps_up: bool
) -> None:
    """One record waits at 1 s."""
    ours = loop({P[0]: ((0, 1_000),)}, process_ms=process_ms)
    ours.own((P[0],), (0,), SECOND)
    assert ours.keeps_up(SECOND) is keeps_up


# -- partitions come and go


def test_what_was_in_hand_of_a_partition_that_has_gone_says_nothing_when_it_comes_back() -> None:
    """A look at 1 s takes 5 records of P0 and 5 of P1, of 100 ms each, in one poll. P0 goes when its records
    are done, at 1.5 s, and comes back at 1.6 s with the position 50: the records of P1 are still in hand."""
    rates = {P[0]: ((0, 5_000),), P[1]: ((0, 5_000),)}
    ours = loop(rates, poll_records=10, interval_ms=1_000, process_ms=100)
    ours.own(P[:2], (0, 0), SECOND)
    ours.release(P[:1], 1_500 * MS)
    ours.own(P[:1], (50,), 1_600 * MS)
    assert ours.positions(1_700 * MS) == {P[0]: 50, P[1]: 2}
    assert ours.polled_positions(1_700 * MS) == {P[0]: 50, P[1]: 0}
    assert ours.positions(2 * SECOND) == {P[0]: 50, P[1]: 5}


def hundred_waiting(*numbers: int) -> PollLoop:
    """100 records of each wait at T. A fetch has three of one, a poll brings two, each takes 10 ms."""
    rates = dict.fromkeys(P, ((0, 100_000), (SECOND, 0)))
    ours = loop(rates, poll_records=2, fetch_records=3, process_ms=10)
    ours.own([P[number] for number in numbers], [0 for _ in numbers], T)
    return ours


def test_the_rest_of_a_fetch_comes_before_the_records_of_a_new_partition() -> None:
    """At 20 ms one record is left of what was fetched of P1, and P0 has come; behind P1 stands P2."""
    ours = hundred_waiting(1, 2)
    ours.own((P[0],), (0,), T + 10 * MS)
    found = [[*ours.positions(T + ms * MS).values()] for ms in (20, 40, 60, 80)]
    assert found == [[0, 2, 0], [0, 3, 1], [0, 3, 3], [2, 3, 3]]


def test_a_partition_that_goes_leaves_its_turn_and_not_its_fetch_to_the_next_one() -> None:
    """The second poll brings the last record of P0's fetch and one of P1, of which two are left. P1 goes at
    30 ms: three are fetched of P2."""
    ours = hundred_waiting(0, 1, 2)
    ours.release((P[1],), T + 30 * MS)
    assert [[*ours.positions(T + ms * MS).values()] for ms in (60, 80)] == [[3, 2], [4, 3]]


# -- partitions that are held, and an application that stands still


def test_a_partition_that_is_held_stands_still_and_goes_on_with_the_next_poll_of_the_others() -> None:
    """P1's records of T are worked on from 50 ms on, so they are dropped. The poll of 15.1 s brings 50 of P0,
    which take until 15.15 s, and then those of P1."""
    ours = owner(BOTH)
    ours.hold((P[1], P[2]), T + 30 * MS)
    assert (ours.held(P[1]), ours.held(P[2])) == (True, False), "the other one is not its own"
    assert ours.positions(15 * SECOND) == {P[0]: 7_450, P[1]: 4_950}
    ours.go_on((P[1],), 15 * SECOND + 30 * MS)
    assert ours.next_poll_us(15 * SECOND + 30 * MS) == 15 * SECOND + 100 * MS
    assert ours.positions(15 * SECOND + 200 * MS) == {P[0]: 7_550, P[1]: 5_000}


def test_an_application_that_held_everything_polls_when_a_partition_goes_on() -> None:
    """30 of 50 are done when it is held. Then polls of 500 take half a second each."""
    ours = owner()
    ours.hold((P[0],), T + 30 * MS)
    assert ours.positions(20 * SECOND) == {P[0]: 4_980}
    ours.go_on((P[0],), 20 * SECOND + 30 * MS)
    assert ours.next_poll_us(20 * SECOND + 30 * MS) == 20 * SECOND + 30 * MS
    assert ours.positions(21 * SECOND + 30 * MS) == {P[0]: 4_980 + 1_000}


@pytest.mark.parametrize(("polls", "last_us"), [(True, T + 70 * MS), (False, T)])
def test_an_application_that_has_nothing_to_do_may_get_a_slow_batch_at_once(
    polls: bool, last_us: int
) -> None:
    """The 50 records of T are done at 50 ms. It polls next when it has stood still for 30 s."""
    ours = owner()
    ours.stall(T + 70 * MS, 30 * SECOND, polls=polls)
    assert ours.last_poll_us(T + 70 * MS) == last_us
    assert ours.next_poll_us(T + 70 * MS + 1) == T + 30 * SECOND + 70 * MS
    assert ours.positions(T + 30 * SECOND + 90 * MS) == {P[0]: 5_020}
