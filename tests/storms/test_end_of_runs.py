"""When a run is over, and which sentence it says on a group that does not come to rest.

Two members start at 0. The group is at rest from 6.01 s on, as in `transcripts/start.txt`. A run looks every
second whether it is over, and adds its tail.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.soaking import one_in
from tests.storms.storms_in_memory import START, scenario, storm
from tests.storms.transcript import WORLD

POLLS_TOO_RARELY = "a member left the group because max.poll.interval.ms had passed since its last poll()"
IS_SILENT = "a member sent no heartbeat for session.timeout.ms"
RECORDS: dict[str, Any] = {"commits": "background", "record_rate": 1, "process_ms": 1}


def ended(*steps: dict[str, Any], **settings: Any) -> tuple[float, str]:
    """When the run is over (s), and the verdict on whether the group came to rest."""
    ran = storm(scenario([START, *steps], **WORLD | settings))
    return ran.rows[-1][0] / 1e6, (ran.figures.invariants or {})["group_settles"]


CRASH = {"at_ms": 60_000, "do": "crash", "members": [0]}
COLLECTION = {"gc_pause_ms": 3_000, "gc_interval_ms": 8_000, "tail_ms": 2_000}
PAUSE = {"at_ms": 60_000, "do": "pause", "members": [0], "for_ms": 20_000}


@pytest.mark.parametrize(
    ("steps", "settings", "end_s"),
    [
        # found to be at rest at 7 s
        ([], {"tail_ms": 3_000}, 10),
        ([], {"tail_ms": 3_000, "least_duration_ms": 20_000}, 23),
        # The last heartbeat arrived at 57.007 s: the session ends at 102.007 s. A heartbeat of the other
        # member arrives at this instant and comes first; the one behind it, 3 s later, learns of the round.
        ([CRASH], {"tail_ms": 0}, 106),
        # 2,010 records wait at 80 s. Polls of 500 take 2.5 s each; that of 97.5 s takes the last 260.
        ([PAUSE], {"record_rate": 100, "process_ms": 5, "members": 1, "partitions": 1, "tail_ms": 0}, 99),
        # The tail ends at 9 s, within the pause of a garbage collection from 8 s to 11 s: another tail.
        ([], COLLECTION, 13),
    ],
)
def test_a_run_is_over_when_its_group_is_at_rest_and_its_tail_has_passed(
    steps: list[dict[str, Any]], settings: dict[str, Any], end_s: float
) -> None:
    assert ended(*steps, **settings) == (end_s, "held")


@pytest.mark.parametrize(
    ("settings", "end_s"),
    [
        # the tail ends at 9 s, within the pause of 8 s to 11 s
        ({"settle_timeout_ms": 8_000}, 11),
        # at 30 s a pause of 30 s to 33 s has begun; the tail ends at 35 s
        ({"settle_timeout_ms": 8_000, "least_duration_ms": 31_000}, 35),
    ],
)
def test_a_pause_is_waited_for_when_the_time_to_settle_is_over(
    settings: dict[str, Any], end_s: float
) -> None:
    assert ended(**COLLECTION, **settings) == (end_s, "held")


@pytest.mark.parametrize(
    ("steps", "settings", "end_s", "after"),
    [
        ([], {"settle_timeout_ms": 2_000}, 7, "6 seconds"),
        ([CRASH], {"settle_timeout_ms": 20_000}, 106, "46 seconds"),
    ],
)
def test_a_group_that_comes_to_rest_behind_its_time_to_settle_has_settled_late(
    steps: list[dict[str, Any]], settings: dict[str, Any], end_s: float, after: str
) -> None:
    at_s, said = ended(*steps, **settings)
    assert at_s == end_s
    assert said.partition(" after the last step")[0] == f"settled late: the group came to rest {after}"


@pytest.mark.parametrize(
    ("stuck", "named", "times"),
    one_in(
        2, [(1, "topic-0-1", 11), (3, "topic-0-1 and topic-0-2 and topic-0-3", 23), (4, "4 partitions", 29)]
    ),
)
def test_a_group_that_does_not_come_to_rest_in_an_hour_is_said_to_with_the_partitions_that_hold_it_up(
    stuck: int, named: str, times: int
) -> None:
    """A record takes longer than max.poll.interval.ms: nobody gets past it. The last step is done at 20 s.
    The time to settle and the tail are over at 622 s: 49 minutes of the hour are left."""
    slow = [{"partition": number, "at": "60s", "takes": "400s"} for number in range(1, stuck + 1)]
    size = {"members": stuck + 1, "partitions": stuck + 1, "slow_records": slow, "least_duration_ms": 90_000}
    restart = {"at_ms": 10_000, "do": "restart", "members": [1]}
    assert ended(restart, **RECORDS, **size) == (
        3_621,
        f"never at rest: 12 rounds in an hour, {named} never progressed for 49 minutes; "
        f"{times} times {POLLS_TOO_RARELY}",
    )


def test_a_group_whose_leader_cannot_assign_is_in_a_livelock() -> None:
    """The two members lead in turn: each computes for 400 s, and its session ends meanwhile."""
    said = f"livelock: 18 rounds in an hour; 18 times {IS_SILENT}"
    assert ended(assign_ms=400_000) == (3_601, said)


def test_two_rounds_in_an_hour_are_no_livelock() -> None:
    limits = {"session.timeout.ms": 1_500_000, "group.max.session.timeout.ms": 1_800_000}
    said = "the group had not settled when the scenario ended"
    assert ended(assign_ms=5_000_000, **limits, **{"max.poll.interval.ms": 2_000_000}) == (3_601, said)
