"""A group whose first record could not be written leaves the timer of its round behind, as in Kafka."""

from __future__ import annotations

from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import HELD, NO_NEW_ASSIGNMENT, NO_OPERATION_FAILED, OWNED_AT_END
from tests.storms.storms_in_memory import scenario, storm

#: The second process finds no group, creates it, and meets the timer that the first one's group has left.
STEPS = [
    {"at_ms": 0, "do": "start", "over_ms": 4_273},
    {"at_ms": 552, "do": "failing-appends", "for_ms": 5_000},
]


def test_a_timer_that_outlives_its_group_is_kafkas_own() -> None:
    result = storm(
        scenario(STEPS, members=2, partitions=1, **{"group.initial.rebalance.delay.ms": 100}),
        seed=125_287_291,
    )
    said = result.figures.invariants or {}
    assert kafkas_own(said) == said[NO_OPERATION_FAILED]
    assert said[NO_OPERATION_FAILED].startswith("a timer outlived its group: ")
    assert {verdict for name, verdict in said.items() if name != NO_OPERATION_FAILED} == {HELD}


def test_what_is_kafkas_own_is_so_alone() -> None:
    timer, skipped = "a timer outlived its group: ...", f"{NO_NEW_ASSIGNMENT} for t-1"
    assert kafkas_own({NO_OPERATION_FAILED: timer, OWNED_AT_END: skipped}) == f"{timer}; {skipped}"
    assert kafkas_own({NO_OPERATION_FAILED: timer, OWNED_AT_END: "1 partition has no owner"}) is None
    assert kafkas_own({NO_OPERATION_FAILED: "the coordinator broke off in generation 1: x"}) is None
    assert kafkas_own({"states_follow": HELD}) is None
