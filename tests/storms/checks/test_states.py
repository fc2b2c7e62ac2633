"""The group's states, checked by a table of their own."""

from __future__ import annotations

import pytest

from groupstorm.coordinator.classic.states import TRANSITIONS
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.states import ALLOWED
from groupstorm.storms.checks.verdicts import GENERATIONS, STATES
from groupstorm.storms.checks.verdicts import TRANSITIONS as AS_IN_KAFKA
from groupstorm.trace.events.coordinator import GroupCreated, GroupStateChanged
from groupstorm.trace.schema import Source

Change = tuple[str, str, int, str]

FIRST_ROUND: list[Change] = [
    ("Empty", "PreparingRebalance", 0, "pending-member"),
    ("PreparingRebalance", "CompletingRebalance", 1, "initial-delay"),
    ("CompletingRebalance", "Stable", 1, "assigned"),
]


def checked(changes: list[Change], causes_known: bool = True) -> InvariantChecks:
    checks = InvariantChecks(causes_known=causes_known)
    for before, after, generation, cause in changes:
        change = GroupStateChanged("g", before, after, generation, cause, None, None, None, 1)
        checks.add(0, Source.COORDINATOR, change)
    return checks


def test_the_table_of_the_checks_and_the_coordinators_are_written_down_apart_and_equal() -> None:
    of_the_coordinator = {
        (str(before), str(cause)): str(after)
        for before, row in TRANSITIONS.items()
        for cause, after in row.items()
    }
    assert of_the_coordinator == ALLOWED


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        (FIRST_ROUND, set()),
        ([("Stable", "PreparingRebalance", 0, "left")], {STATES}),
        ([*FIRST_ROUND, ("Stable", "PreparingRebalance", 1, "assigned")], {AS_IN_KAFKA}),
        ([*FIRST_ROUND, ("Stable", "CompletingRebalance", 1, "left")], {AS_IN_KAFKA}),
        ([*FIRST_ROUND, ("Stable", "PreparingRebalance", 1, "left"),
          ("PreparingRebalance", "CompletingRebalance", 1, "all-joined")], {GENERATIONS}),
    ],
)  # fmt: skip
def test_wrong_states_and_generations_fail(changes: list[Change], broken: set[str]) -> None:
    assert set(checked(changes).violations) == broken


def test_causes_that_are_inferred_are_not_held_against_the_table() -> None:
    changes: list[Change] = [*FIRST_ROUND, ("Stable", "PreparingRebalance", 1, "assigned")]
    assert checked(changes, causes_known=False).violations == {}


def test_a_loaded_group_goes_on_in_the_state_of_its_last_record() -> None:
    checks = InvariantChecks()
    checks.add(0, Source.COORDINATOR, GroupCreated("g", "loaded"))
    change = GroupStateChanged("g", "Stable", "PreparingRebalance", 7, "left", None, None, None, 1)
    checks.add(0, Source.COORDINATOR, change)
    assert checks.violations == {}
