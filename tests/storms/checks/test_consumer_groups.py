"""Each check of consumer groups finds a planted fault that no other finds, and says so in a sentence."""

from __future__ import annotations

import pytest

from groupstorm.storms.checks import verdicts
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import CONSUMER_GROUP_INVARIANTS, HELD, Verdicts
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.schema import Source
from tests.storms.checks.rows import World

Row = events.MemberReconciled | events.GroupEpochBumped | events.TargetAssigned


def row(
    name: str, epoch: int, partitions: str, revoking: str = "", state: str = "STABLE"
) -> events.MemberReconciled:
    held = tuple(f"t-{digit}" for digit in partitions)
    giving = tuple(f"t-{digit}" for digit in revoking)
    return events.MemberReconciled("g", name, f"{name}-id", epoch, state, held, giving)


def bumped(epoch: int) -> events.GroupEpochBumped:
    return events.GroupEpochBumped("g", epoch)


def target(epoch: int) -> events.TargetAssigned:
    return events.TargetAssigned("g", epoch, 1)


#: a has two partitions; b comes and gets one of them.
HANDOVER: list[Row] = [
    bumped(2),
    target(2),
    row("a", 2, "01"),
    bumped(3),
    target(3),
    row("b", 3, "", state="UNRELEASED_PARTITIONS"),
    row("a", 2, "0", "1", "UNREVOKED_PARTITIONS"),
    row("a", 3, "0"),
    row("b", 3, "1"),
]


def found(rows: list[Row]) -> dict[str, str]:
    checks = InvariantChecks(consumer_groups=True)
    for event in rows:
        checks.add(0, Source.COORDINATOR, event)
    checks.finish(World(), 0)
    return checks.violations


def test_a_handover_breaks_nothing() -> None:
    assert found(HANDOVER) == {}


FAULTS: list[tuple[str, list[Row], str, str]] = [
    ("the newcomer gets it before the old owner has given it up", [*HANDOVER[:7], HANDOVER[8], HANDOVER[7]],
     verdicts.TWO_HOLDERS, "t-1 was given to b while a had it"),
    ("the group epoch goes back", [*HANDOVER, bumped(3)], verdicts.EPOCHS, "group epoch 3 came after 3"),
    ("a target is computed for an older epoch", [*HANDOVER, target(2)], verdicts.EPOCHS,
     "the target of epoch 2 came after that of epoch 3"),
    ("a member's epoch goes back to 0", [*HANDOVER, row("a", 0, "0"), row("a", 3, "0")], verdicts.EPOCHS,
     "a went from member epoch 3 to 0"),
    ("a member's epoch goes back", [*HANDOVER, row("a", 2, "0", state="STABLE"), row("a", 3, "0")],
     verdicts.EPOCHS, "a went from member epoch 3 to 2"),
    ("a member is never told of its target", [*HANDOVER[:8], row("b", 3, "", state="UNRELEASED_PARTITIONS")],
     verdicts.TARGETS, "b never reached the target of epoch 3: UNRELEASED_PARTITIONS at member epoch 3"),
    ("a revocation never ends", [*HANDOVER[:5], HANDOVER[6], row("b", 3, "")], verdicts.REVOCATIONS,
     "a never gave up t-1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "invariant", "sentence"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_fault_is_found_by_one_check_alone(rows: list[Row], invariant: str, sentence: str) -> None:
    assert found(rows) == {invariant: sentence}


def test_the_invariants_of_consumer_groups_hold_until_they_are_violated() -> None:
    held = {name: said for name, said in Verdicts(consumer_groups=True).of.items() if said == HELD}
    assert held.keys() - Verdicts().of.keys() == set(CONSUMER_GROUP_INVARIANTS)
