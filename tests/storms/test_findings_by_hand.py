"""Which broken invariants are a finding on the configuration, and which are what Kafka itself does wrong."""

from __future__ import annotations

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.settling import Rounds, Settling, finding, kafkas_own
from groupstorm.trace.events.coordinator import GroupStateChanged

SECOND = 1_000_000
T0 = TopicPartition("t", 0)
LIVELOCK = "livelock: 5 rounds in an hour"
NOT_WRITTEN = "a removal was not written: a is gone"
NOT_ASSIGNED = "no new assignment: nobody owns t-0"
OUTLIVED = "a timer outlived its group: x"


def test_a_livelock_may_leave_requests_unanswered_and_partitions_without_an_owner() -> None:
    verdicts = {
        "group_settles": LIVELOCK,
        "parked_requests_answered": "y",
        "every_partition_owned_at_end": "z",
        "no_operation_failed": "held",
    }
    assert finding(verdicts) == LIVELOCK
    assert finding({**verdicts, "no_operation_failed": OUTLIVED}) is None


@pytest.mark.parametrize("missing", ["livelock: x", "never at rest: x", "settled late: x", "unsettled"])
def test_only_a_group_that_cannot_settle_or_settles_late_is_a_finding(missing: str) -> None:
    assert finding({"group_settles": missing}) == (None if missing == "unsettled" else missing)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({}, None),
        ({"group_settles": "held", "no_operation_failed": "held"}, None),
        ({"group_settles": "held", "no_operation_failed": OUTLIVED}, OUTLIVED),
        ({"every_partition_owned_at_end": NOT_ASSIGNED}, NOT_ASSIGNED),
        # of several the sentences are said, each once
        ({"group_settles": NOT_WRITTEN, "members_are_the_living_at_end": NOT_WRITTEN}, NOT_WRITTEN),
        (
            {"group_settles": NOT_WRITTEN, "no_operation_failed": OUTLIVED},
            f"{NOT_WRITTEN}; {OUTLIVED}",
        ),
        # each invariant has defects of its own, and most have none
        ({"group_settles": NOT_ASSIGNED}, None),
        ({"one_owner_per_generation": NOT_WRITTEN}, None),
        ({"no_operation_failed": OUTLIVED, "one_owner_per_generation": "two owners"}, None),
        ({"no_operation_failed": OUTLIVED, "group_settles": LIVELOCK}, None),
    ],
)
def test_kafka_is_to_blame_if_every_broken_invariant_is_one_that_a_defect_of_it_breaks(
    verdicts: dict[str, str], said: str | None
) -> None:
    assert kafkas_own(verdicts) == said


class World:
    def __init__(self) -> None:
        self.settled = False
        self.committed = {T0: 1}


@pytest.mark.parametrize(
    ("looked_s", "said"),
    [
        # what is committed when the time to settle is over is no progress from then on
        (3_599.999999, "livelock: 3 rounds in 61 minutes, no partition progressed for 60 seconds"),
        # after an hour the progress since the last step counts
        (3_600, "never at rest: 3 rounds in 61 minutes"),
    ],
)
def test_a_group_whose_time_to_settle_was_an_hour_is_judged_by_its_progress_since_the_last_step(
    looked_s: float, said: str
) -> None:
    """The last step is done at 10 s, and then an offset is committed."""
    world, rounds = World(), Rounds()
    settling = Settling(world, rounds)
    settling.steps_done(10 * SECOND)
    for _ in range(3):
        changed = GroupStateChanged("g", "", "CompletingRebalance", 1, "x", None, None, None, 1)
        rounds.group_changed(changed, 20 * SECOND)
    world.committed = {T0: 2}
    assert settling.is_worth_observing(10 * SECOND + round(looked_s * SECOND))
    assert settling.sentence(False, 3_670 * SECOND) == said


@pytest.mark.parametrize(
    ("before", "after", "rounds"),
    [("Empty", "Stable", 1), ("Empty", "PreparingRebalance", 0), ("Stable", "Empty", 0)],
)
def test_a_consumer_group_that_was_empty_has_a_round_when_its_first_member_has_its_target(
    before: str, after: str, rounds: int
) -> None:
    seen = Rounds()
    seen.group_changed(GroupStateChanged("g", before, after, 1, "x", None, None, None, 1), 0)
    assert len(seen.completed_us) == rounds
