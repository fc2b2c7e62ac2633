"""Whose records an application gets next when partitions come and go, worked out by hand.

100 records of each partition wait. A fetch has three of a partition, a poll brings two, and each takes 10 ms.
"""

from __future__ import annotations

from groupstorm.storms.world.poll_loop import PollLoop
from tests.storms.test_poll_loop import SECOND, P, loop

#: The first poll.
T = 10 * SECOND
MS = 1_000


def owner_of(*numbers: int) -> PollLoop:
    rates = dict.fromkeys(P, ((0, 100_000), (SECOND, 0)))
    ours = loop(rates, poll_records=2, fetch_records=3, process_ms=10)
    ours.own([P[number] for number in numbers], [0 for _ in numbers], T)
    return ours


def positions(ours: PollLoop, after_ms: int) -> list[int]:
    return list(ours.positions(T + after_ms * MS).values())


def test_a_partition_is_drained_before_the_next_one_has_its_turn() -> None:
    ours = owner_of(0, 1)
    assert positions(ours, 20) == [2, 0]
    assert positions(ours, 30) == [3, 0]
    assert positions(ours, 40) == [3, 1]
    assert positions(ours, 60) == [3, 3]
    assert positions(ours, 80) == [5, 3]


def test_the_rest_of_a_fetch_comes_before_the_records_of_a_new_partition() -> None:
    """At 20 ms one record is left of what was fetched of P1, and P0 has come; behind P1 stands P2."""
    ours = owner_of(1, 2)
    ours.own((P[0],), (0,), T + 10 * MS)
    assert positions(ours, 20) == [0, 2, 0]
    assert positions(ours, 40) == [0, 3, 1]
    assert positions(ours, 60) == [0, 3, 3]
    assert positions(ours, 80) == [2, 3, 3]


def test_a_partition_whose_turn_it_was_leaves_its_turn_and_not_its_fetch_to_the_next_one() -> None:
    """The second poll brings the last record of P0's fetch and one of P1, of which two are left."""
    ours = owner_of(0, 1, 2)
    assert positions(ours, 30) == [3, 0, 0]
    ours.release((P[1],), T + 30 * MS)
    assert positions(ours, 60) == [3, 2]
    assert positions(ours, 80) == [4, 3], "three were fetched of P2"


def test_after_the_last_partition_of_the_line_comes_the_first() -> None:
    ours = owner_of(0, 1)
    ours.release((P[1],), T + 30 * MS)
    assert positions(ours, 60) == [5]
    assert positions(ours, 70) == [6]
    assert positions(ours, 90) == [8]
