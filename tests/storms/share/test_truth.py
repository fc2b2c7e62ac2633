"""Share groups of storms against Kafka 4.4.0's own (measured on one node with Java's share consumers)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

#: 2,000 records in 4 partitions, 20 ms of work on each, all there before the consumers are.
THROUGHPUT = {
    "group.protocol": "share",
    "share.auto.offset.reset": "earliest",
    "partitions": 4,
    "process_ms": 20,
    "record_rate": 500,
    "record_rate_over_time": [{"at": "1s", "factor": 0}],
    "poll_interval_ms": 0,
    "max.poll.records": 10,
    "records_per_batch": 6,
    "settle_timeout_ms": 20_000,
    #: A poll of ten records took that node 16 ms longer than their work: most of it is the write of the
    #: acknowledgements. From the run with four consumers; the others follow.
    "append_latency_ms": 14,
}
#: One partition with 20 records, two consumers.
HELD = {
    **FIXED, "group.protocol": "share", "share.auto.offset.reset": "earliest",
    "share.acknowledgement.mode": "explicit", "partitions": 1, "members": 2, "record_rate": 20,
    "record_rate_over_time": [{"at": "1s", "factor": 0}], "records_per_batch": 20, "process_ms": 60_000,
    "least_duration_ms": 60_000, "tail_ms": 0, "settle_timeout_ms": 1_000,
}  # fmt: skip


def throughput(members: int, **settings: Any) -> Storm:
    return storm(
        scenario([{"at_ms": 1_000, "do": "start"}], **{**THROUGHPUT, "members": members, **settings})
    )


@pytest.mark.parametrize(
    ("members", "mode", "least", "most"),
    [
        (4, "batch_optimized", 173, 190),
        (8, "batch_optimized", 340, 380),
        (16, "batch_optimized", 653, 724),
        (16, "record_limit", 653, 724),
    ],
)
def test_throughput_grows_with_the_consumers_beyond_the_partitions(
    members: int, mode: str, least: float, most: float
) -> None:
    figures = throughput(members, **{"share.acquire.mode": mode}).figures
    assert figures.delivery_counts == {"1": 2000}
    assert least <= (figures.records_per_second or 0) <= most


#: The consumers have joined; then all records come within a tenth of a second, 25 in a record batch.
CONVERGED = {
    "record_rate": 5_000,
    "record_rate_over_time": [
        {"at": 0, "factor": 0},
        {"at": "20s", "factor": 1},
        {"at": "20100ms", "factor": 0},
    ],
    "records_per_batch": 25,
    "least_duration_ms": 40_000,
}


@pytest.mark.parametrize(
    ("members", "mode", "least", "most"),
    [
        (4, "record_limit", 184, 190),
        (16, "record_limit", 652, 718),
        # Kafka did 658 to 731: its consumers had five record batches each, too, but took 20.4 to 21.0 ms for
        # a record; here that is part of the write, of which there are five instead of thirteen
        (16, "batch_optimized", 700, 780),
    ],
)
def test_throughput_of_consumers_that_have_joined_before(
    members: int, mode: str, least: float, most: float
) -> None:
    figures = throughput(members, **CONVERGED, **{"share.acquire.mode": mode}).figures
    assert figures.records_processed == 2000
    assert least <= (figures.records_per_second or 0) <= most


def test_four_ordinary_consumers_that_have_joined_before_do_as_much_as_four_of_a_share_group() -> None:
    """They took 10.1 s for 2,000 records; the ideal is 10 s. Sixteen of a share group did 3.4 to 3.5
    times as much."""
    of_share_groups = ("group.protocol", "share.auto.offset.reset", "records_per_batch")
    settings = {
        name: value for name, value in (THROUGHPUT | CONVERGED).items() if name not in of_share_groups
    }
    figures = storm(
        scenario([{"at_ms": 1_000, "do": "start"}], **settings, members=4, **{"group.protocol": "consumer"})
    ).figures
    assert figures.records_processed == 2000
    assert figures.staleness_max_seconds == pytest.approx(10.1, rel=0.03)


def test_with_500_records_a_poll_four_of_sixteen_consumers_work() -> None:
    run = throughput(16, **{"max.poll.records": 500})
    taken = {event.member: sum(event.counts) for _, event in run.events("share_records_acquired")}
    assert sorted(taken.values()) == [500, 500, 500, 500]
    assert run.figures.consumers_without_records == 12
    assert run.figures.records_per_second == pytest.approx(197, rel=0.03)


def test_the_first_record_comes_with_the_second_heartbeat() -> None:
    """A share group's first member gets nothing at its join; Java's consumers took 0.5 to 1.3 s to start."""
    figures = throughput(16).figures
    assert 5.0 <= (figures.first_record_seconds or 0) <= 5.1


def held(do: dict[str, Any], **settings: Any) -> tuple[Storm, list[tuple[int, Any]]]:
    """Both consumers run; the one that gets all 20 records meets its end 10 s after that."""
    run = storm(scenario([START], **{**HELD, **settings}))
    (first_us, first), *_ = run.events("share_records_acquired")
    member = int(first.member[-1])
    step = {"at_ms": first_us // 1000 + 10_000, "members": [member], **do}
    run = storm(scenario([START, step], **{**HELD, **settings}))
    return run, run.events("share_records_acquired")


@pytest.mark.parametrize("lock_ms", [30_000, 15_000])
def test_a_hung_consumers_records_come_when_their_locks_end(lock_ms: int) -> None:
    """29.96 s and 14.99 s after they were fetched."""
    run, acquired = held(
        {"do": "pause", "for_ms": 40_000}, **{"group.share.record.lock.duration.ms": lock_ms}
    )
    (first_us, first), (second_us, second), *_ = acquired
    assert (first.counts, second.counts, second.deliveries) == ((20,), (20,), (2,))
    assert second_us - first_us == pytest.approx(lock_ms * 1000, abs=1000)
    assert run.figures.redeliveries_by_cause is not None
    assert run.figures.redeliveries_by_cause["lock-expired"] >= 20


def test_a_killed_consumers_records_come_at_once() -> None:
    """0.11 s and 0.20 s after the signal: the connection's end releases them."""
    run, acquired = held({"do": "crash"})
    (first_us, _), (second_us, second), *_ = acquired
    assert (second.counts, second.deliveries) == ((20,), (2,))
    assert second_us - first_us - 10_000_000 <= 200_000
    (_, returned), *_ = run.events("share_records_returned")
    assert returned.cause == "connection-closed"
    assert returned.duration_us == pytest.approx(10_000_000, abs=2_000)


def deliveries(limit: int, slow: list[dict[str, Any]]) -> tuple[list[tuple[int, int, int]], Storm]:
    """(poll, offset, count) of each delivery of ten records in one record batch to one consumer."""
    settings = {
        **HELD, "members": 1, "record_rate": 10, "records_per_batch": 10, "process_ms": 1,
        "group.share.delivery.count.limit": limit, "slow_records": slow,
    }  # fmt: skip
    run = storm(scenario([START], **settings))
    found = []
    for poll, (_, event) in enumerate(run.events("share_records_acquired"), start=1):
        for first, count, number in zip(event.positions, event.counts, event.deliveries, strict=True):
            found += [(poll, offset, number) for offset in range(first, first + count)]
    return found, run


def test_one_record_that_is_always_released_is_delivered_as_often_as_the_limit_says() -> None:
    found, run = deliveries(5, [{"partition": 0, "offset": 3, "takes": 1, "then": "release"}])
    assert [count for _, offset, count in found if offset == 3] == [1, 2, 3, 4, 5]
    assert len(found) == 14
    assert run.figures.records_archived == 1


def test_a_rejected_record_is_delivered_once_and_goes_to_the_dead_letter_queue() -> None:
    found, run = deliveries(5, [{"partition": 0, "offset": 3, "takes": 1, "then": "reject"}])
    assert len(found) == 10
    ((_, archived),) = run.events("share_records_archived")
    assert (archived.positions, archived.cause, archived.topics) == ((3,), "rejected", ())


ALL = [{"every": 1, "takes": 1, "then": "release"}]


def test_all_records_released_with_a_limit_of_five_come_in_ever_smaller_numbers() -> None:
    found, run = deliveries(5, ALL)
    whole = [(poll, offset, poll) for poll in (1, 2, 3) for offset in range(10)]
    fours = [(4, offset, 4) for offset in range(5)]
    alone = [(5 + offset, offset, 5) for offset in range(5)]
    rest = [(10, offset, 4) for offset in range(5, 10)]
    alone_again = [(6 + offset, offset, 5) for offset in range(5, 10)]
    assert found == [*whole, *fours, *alone, *rest, *alone_again]
    assert run.figures.records_archived == 10


def test_all_records_released_with_a_limit_of_ten_are_delivered_a_hundred_times_in_44_polls() -> None:
    found, _ = deliveries(10, ALL)
    polls = [[one for one in found if one[0] == poll] for poll in range(1, 45)]
    assert len(found) == 100
    assert found[-1] == (44, 9, 10)
    assert [len(poll) for poll in polls[:10]] == [10, 10, 10, 10, 10, 5, 2, 1, 1, 1]
    assert found[60:66] == [(11, 1, 8), (12, 1, 9), (13, 1, 10), (14, 2, 7), (14, 3, 7), (15, 2, 8)]
