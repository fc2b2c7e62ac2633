"""The poll loop against an application that is played record by record, and what holds of every loop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.randomness import Stream
from groupstorm.storms.record_logs import RecordLogs
from groupstorm.storms.scenario import distributions
from groupstorm.storms.world.looks import PollSettings
from groupstorm.storms.world.poll_loop import PollLoop
from groupstorm.storms.world.record_times import RecordTimes

SECOND = 1_000_000
P = tuple(TopicPartition("t", number) for number in range(4))

RATES = st.lists(st.sampled_from([0, 7_000, 40_000, 100_000, 333_000]), min_size=4, max_size=4)


def loop(
    rates: Mapping[TopicPartition, tuple[tuple[int, int], ...]],
    *,
    poll_records: int = 500,
    fetch_records: int = 1_000_000,
    interval_ms: object = 100,
    process_ms: object = 1,
    steps: bool = False,
) -> PollLoop:
    times = RecordTimes(distributions.parse("process_ms", process_ms), 1, Stream(1, "records", "m", 1))
    interval = distributions.parse("poll_interval_ms", interval_ms)
    polling = PollSettings(poll_records, poll_records, fetch_records, interval, 60 * SECOND)
    return PollLoop(RecordLogs(lambda tp: rates[tp]), polling, times, steps)


class Played:
    """An application of its own: it asks for records one by one and sleeps through each."""

    def __init__(
        self,
        rates: Mapping[TopicPartition, tuple[tuple[int, int], ...]],
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
    for steps in (False, True):
        ours = loop(
            rates,
            poll_records=poll_records,
            fetch_records=fetch_records,
            interval_ms=interval_ms,
            process_ms=process_ms,
            steps=steps,
        )
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
    both = [
        loop(
            rates,
            poll_records=poll_records,
            interval_ms=interval_ms,
            process_ms=process_ms,
            steps=steps,
        )
        for steps in (False, True)
    ]
    now_us = 0
    before: dict[TopicPartition, int] = {}
    for after_us, do, partition in actions:
        now_us += after_us
        for each in both:
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
        lazy, stepped = both
        positions = lazy.positions(now_us)
        assert positions == stepped.positions(now_us)
        assert lazy.polled_positions(now_us) == stepped.polled_positions(now_us)
        assert lazy.next_poll_us(now_us) == stepped.next_poll_us(now_us)
        assert lazy.last_poll_us(now_us) == stepped.last_poll_us(now_us)
        assert lazy.keeps_up(now_us) == stepped.keeps_up(now_us)
        for owned_now, position in positions.items():
            assert position <= max(logs.end(owned_now, now_us), before.get(owned_now, 0))
            if do not in ("own", "release"):
                assert position >= before.get(owned_now, 0), "positions never go back"
        before = positions


@settings(deadline=None)
@given(RATES, st.integers(1, 40), st.integers(1, 9))
def test_nobody_is_faster_than_his_records_take(
    arriving: list[int], process_ms: int, poll_records: int
) -> None:
    rates = {tp: ((0, rate),) for tp, rate in zip(P, arriving, strict=True)}
    ours = loop(rates, process_ms=process_ms, poll_records=poll_records)
    ours.own(P, (0, 0, 0, 0), 0)
    for at_us in (SECOND, 5 * SECOND, 61 * SECOND):
        done = sum(ours.positions(at_us).values())
        assert done <= at_us // (process_ms * 1000)
        if sum(arriving) * process_ms > 2_000_000:
            assert done >= at_us // (process_ms * 1000) - at_us // SECOND - 200, "there is always work"


def test_a_partition_alone_gets_the_whole_capacity() -> None:
    ours = loop({P[0]: ((0, 11_000_000),)}, process_ms=10)
    ours.own((P[0],), (0,), 0)
    assert ours.positions(600 * SECOND)[P[0]] in range(59_980, 60_001)
    assert not ours.keeps_up(600 * SECOND)


def test_what_is_committed_in_the_background_was_finished_at_the_last_poll() -> None:
    # 50 records arrive between two polls, and take 50 ms
    ours = loop({P[0]: ((0, 500_000),)}, process_ms=1)
    ours.own((P[0],), (0,), 0)
    assert ours.positions(10 * SECOND + 30_000) == {P[0]: 4_980}
    assert ours.polled_positions(10 * SECOND + 30_000) == {P[0]: 4_950}


def test_what_is_in_hand_of_a_partition_that_goes_is_dropped() -> None:
    ours = loop({P[0]: ((0, 500_000),), P[1]: ((0, 0),)}, process_ms=1)
    ours.own(P[:2], (0, 0), 0)
    ours.release((P[0],), 10 * SECOND + 30_000)
    assert ours.positions(11 * SECOND) == {P[1]: 0}
    ours.own((P[0],), (4_950,), 11 * SECOND + 1)
    assert 9_900 < ours.positions(20 * SECOND)[P[0]] <= 10_000, "it begins anew, and catches up"


def test_a_stalled_application_goes_on_where_it_stood() -> None:
    ours = loop({P[0]: ((0, 500_000),)}, process_ms=1)
    ours.own((P[0],), (0,), 0)
    now_us = 10 * SECOND + 30_000
    ours.stall(now_us, 60 * SECOND, polls=True)
    assert ours.positions(now_us + 59 * SECOND) == {P[0]: 4_980}
    assert ours.next_poll_us(now_us + SECOND) == 70 * SECOND + 100_000
    assert ours.last_poll_us(now_us + SECOND) == 10 * SECOND


# -- single questions, by hand -----------------------------------------------------------------------

ONE = {P[0]: ((0, 500_000),)}
"""Half a record a millisecond: 50 in 100 ms, which take 50 ms at 1 ms each."""


def test_a_loop_begins_and_ends_with_its_partitions() -> None:
    ours = loop({P[0]: ((0, 500_000),), P[1]: ((0, 500_000),)})
    assert ours.last_poll_us(5) is None
    assert ours.next_poll_us(5) == 5
    assert ours.keeps_up(5), "there is nothing to keep up with"
    assert ours.partitions == ()
    ours.own((P[1],), (0,), 1_000)
    ours.own((P[0],), (0,), 2_000)
    assert ours.partitions == P[:2]
    assert [*ours.processed_partitions] == [*P[:2]]
    assert P[1] in ours
    assert P[2] not in ours
    assert not ours.held(P[1])
    ours.hold((P[1],), SECOND)
    assert ours.held(P[1])
    assert [*ours.processed_partitions] == [P[0]]
    assert ours.partitions == P[:2], "it is kept"
    ours.release((P[0], P[1], P[3]), 2 * SECOND)
    assert ours.partitions == ()
    assert ours.keeps_up(3 * SECOND)


def test_positions_are_asked_for_of_what_was_owned_then() -> None:
    ours = loop({P[0]: ((0, 500_000),), P[1]: ((0, 500_000),)})
    ours.own((P[0],), (0,), 0)
    ours.own((P[1],), (7,), 10 * SECOND)
    assert set(ours.positions(10 * SECOND - 1)) == {P[0]}
    assert set(ours.positions(10 * SECOND)) == {P[0], P[1]}
    assert ours.positions(10 * SECOND)[P[1]] == 7
    assert ours.log_end(P[1], 10 * SECOND) == 5_000
    assert ours.rates(SECOND) == {P[0]: 500_000, P[1]: 500_000}


def test_a_partition_that_is_held_stands_still_and_goes_on() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    ours.hold((P[0],), 10 * SECOND + 30_000)  # 30 of the 50 in hand are done
    ours.hold((P[0],), 10 * SECOND + 40_000)
    assert ours.positions(20 * SECOND) == {P[0]: 4_980}
    ours.go_on((P[0],), 20 * SECOND)
    assert ours.positions(20 * SECOND) == {P[0]: 4_980}
    # 500 a poll and half a second each: from 5,020 records behind it gains half a record a millisecond
    assert ours.positions(21 * SECOND)[P[0]] == 4_980 + 1_000
    assert not ours.keeps_up(21 * SECOND)
    assert ours.keeps_up(31 * SECOND)


def test_when_it_catches_up_is_found_before_it_happens() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 10 * SECOND)
    # 5,000 records behind; each poll of 500 takes 500 ms, in which 250 come
    assert not ours.keeps_up(10 * SECOND)
    assert ours.caught_up_us(10 * SECOND, 12 * SECOND) is None
    caught_up_us = ours.caught_up_us(10 * SECOND, 60 * SECOND)
    assert caught_up_us is not None
    assert 19 * SECOND < caught_up_us < 20 * SECOND
    assert ours.keeps_up(caught_up_us)
    assert not ours.keeps_up(caught_up_us - 1)
    assert ours.caught_up_us(10 * SECOND, 12 * SECOND) is None, "though more is computed by now"
    assert ours.caught_up_us(30 * SECOND, 31 * SECOND) == 30 * SECOND


def test_capacity_and_interval_are_those_of_the_settings() -> None:
    assert loop(ONE, process_ms=4).capacity == 250_000, "records in 1,000 seconds"
    assert loop(ONE, interval_ms={"uniform": [50, 2_002]}).longest_interval_us == 2_002_000


def test_the_next_poll_comes_when_the_interval_or_the_work_is_over() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    assert ours.next_poll_us(10 * SECOND) == 10 * SECOND
    assert ours.poll_after_us(10 * SECOND) == 10 * SECOND + 100_000
    assert ours.next_poll_us(10 * SECOND + 1) == 10 * SECOND + 100_000
    assert ours.last_poll_us(10 * SECOND + 99_999) == 10 * SECOND
    assert ours.last_poll_us(10 * SECOND + 100_000) == 10 * SECOND + 100_000


def test_an_application_that_does_not_wait_is_inside_poll_while_it_has_nothing_to_do() -> None:
    ours = loop(ONE, interval_ms=0)
    ours.own((P[0],), (0,), 0)
    # looks every 50 ms; 25 records arrive in between, and take 25 ms
    assert ours.next_poll_us(10 * SECOND + 10_000) == 10 * SECOND + 25_000
    assert ours.next_poll_us(10 * SECOND + 30_000) == 10 * SECOND + 30_000
    assert ours.poll_after_us(10 * SECOND + 30_000) == 10 * SECOND + 50_000


def test_a_stall_without_work_in_hand_puts_the_next_look_off() -> None:
    ours = loop(ONE)
    ours.own((P[0],), (0,), 0)
    now_us = 10 * SECOND + 70_000  # the 50 of 10.0 s are done
    ours.stall(now_us, 30 * SECOND, polls=False)
    assert ours.next_poll_us(now_us) == 40 * SECOND + 70_000
    assert ours.positions(40 * SECOND) == {P[0]: 5_000}
    assert ours.positions(40 * SECOND + 70_000 + 20_000)[P[0]] == 5_020


def test_regular_polls_are_promised_only_while_they_are_sure() -> None:
    """500 records of 1 ms are a poll at most: half a second; 50 arrive in 100 ms."""
    ours = loop({P[0]: ((0, 500_000), (50 * SECOND, 900_000))})
    ours.own((P[0],), (0,), 0)
    assert ours.regular_until_us(SECOND, 500_000) is None, "no poll lasts longer"
    assert ours.regular_until_us(SECOND, 499_999) == 50 * SECOND
    assert ours.regular_until_us(SECOND, 100_000) == 50 * SECOND
    assert ours.regular_until_us(SECOND, 99_999) == SECOND, "polls are farther apart"
    assert ours.regular_until_us(60 * SECOND, 100_000) is None, "the rate stays"
    behind = loop({P[0]: ((0, 500_000), (50 * SECOND, 900_000))})
    behind.own((P[0],), (0,), 30 * SECOND)
    assert behind.regular_until_us(31 * SECOND, 400_000) == 31 * SECOND, "it does not keep up"
    assert behind.sure_until_us(45 * SECOND) in (0, 50 * SECOND)


def test_the_records_in_hand_of_other_partitions_stay_in_hand() -> None:
    """At 10 s the application gets 50 records of each: P[0]'s take until 10.05 s, P[1]'s until 10.1 s."""
    ours = loop({P[0]: ((0, 500_000),), P[1]: ((0, 500_000),)})
    ours.own(P[:2], (0, 0), 0)
    ours.release((P[0],), 10 * SECOND + 70_000)
    assert ours.positions(10 * SECOND + 80_000) == {P[1]: 4_980}
    assert ours.positions(10 * SECOND + 100_000) == {P[1]: 5_000}


def test_a_loop_that_owns_nothing_yet_keeps_up_and_one_that_has_not_looked_does_not() -> None:
    ours = loop(ONE)
    assert ours.keeps_up(0) is True
    ours.own((P[0],), (0,), SECOND)
    assert ours.keeps_up(SECOND - 1) is False


def test_what_was_in_hand_of_a_partition_that_has_gone_says_nothing_when_it_comes_back() -> None:
    """A look at 1 s takes 5 records of P0 and 5 of P1, of 100 ms each, in one poll. P0 goes when its records
    are done, at 1.5 s, and comes back at 1.6 s with the position 50: the records of P1 are still in hand."""
    ours = loop(
        {P[0]: ((0, 5_000),), P[1]: ((0, 5_000),)}, poll_records=10, interval_ms=1_000, process_ms=100
    )
    ours.own(P[:2], (0, 0), SECOND)
    assert ours.positions(1_500_000) == {P[0]: 5, P[1]: 0}
    ours.release(P[:1], 1_500_000)
    assert ours.positions(1_550_000) == {P[1]: 0}
    ours.own(P[:1], (50,), 1_600_000)
    assert ours.positions(1_700_000) == {P[0]: 50, P[1]: 2}
    assert ours.polled_positions(1_700_000) == {P[0]: 50, P[1]: 0}
    assert ours.positions(2 * SECOND) == {P[0]: 50, P[1]: 5}
