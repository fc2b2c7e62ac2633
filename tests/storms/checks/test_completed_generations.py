"""Which `partitions_assigned` completes a generation: on that the checks of owners depend."""

from __future__ import annotations

import pytest

from groupstorm.storms.checks.verdicts import HELD, LOST_IS_GONE, ONE_OWNER
from groupstorm.trace.events.member import PartitionsAssigned, RejoinRequested
from tests.storms.checks import rows as r
from tests.storms.checks.rows import Row, check

BOTH: list[Row] = [(0, r.started("a")), (0, r.started("b")), (0, r.added("a-1")), (0, r.added("b-1"))]
A_HAS_TWO: Row = (0, r.taken("a-1", "t-0", "t-1"))
GIVES_ONE_UP: Row = (0, r.revoked("a-1", "t-1", cause="assignment"))


def without_id(generation: int = -1) -> Row:
    """The row of a member that has no id any more: it has left, or its generation was reset."""
    return (0, PartitionsAssigned("g", "a", "", generation, (), (), 0))


def kept(generation: int) -> str:
    return (
        f"a completed generation {generation} and still owned t-0, which it had lost (it has a new member id)"
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        # the member leaves during onPartitionsRevoked of a round: the round's other call follows all the same
        ([A_HAS_TWO, GIVES_ONE_UP, without_id()], HELD),
        # one such call per round
        ([A_HAS_TWO, GIVES_ONE_UP, without_id(), without_id()], kept(-1)),
        # no call of a round went before: an eager member revokes before it joins
        ([A_HAS_TWO, (0, r.revoked("a-1", "t-1")), without_id()], kept(-1)),
        ([(0, r.taken("a-1", "t-0")), without_id()], kept(-1)),
        # with an id and a generation the call completes a round, whatever went before
        ([A_HAS_TWO, GIVES_ONE_UP, (0, r.taken("a-2", generation=0))], kept(0)),
    ],
)
def test_a_call_without_a_generation_completes_nothing_if_the_member_left_during_the_round(
    rows: list[Row], sentence: str
) -> None:
    assert check([*BOTH, *rows]).verdicts[LOST_IS_GONE] == sentence


def test_a_call_for_an_earlier_round_does_not_take_the_member_back_to_it() -> None:
    late = (0, r.taken("a-1", generation=1))
    rows: list[Row] = [*BOTH, (0, r.taken("a-1", "t-0", generation=2)), late]
    found = check([*rows, (0, r.taken("b-1", "t-0", generation=2))])
    assert found.verdicts[ONE_OWNER] == "t-0 is owned by a and b in generation 2"


def test_a_group_that_was_created_again_begins_with_low_generations_and_new_ids() -> None:
    rows: list[Row] = [*BOTH, (0, r.taken("a-1", "t-0", generation=5)), (0, r.taken("a-2", generation=1))]
    assert check(rows).verdicts[LOST_IS_GONE] == kept(1)


def test_after_a_reset_the_same_generation_cannot_be_completed_once_more() -> None:
    rows: list[Row] = [
        *BOTH,
        (0, r.taken("a-1", "t-0")),
        (0, r.rejoin("a-1", "ILLEGAL_GENERATION")),
        (0, r.taken("a-1")),
    ]
    assert check(rows).verdicts[LOST_IS_GONE] == (
        "a completed generation 1 and still owned t-0, which it had lost (ILLEGAL_GENERATION)"
    )


@pytest.mark.parametrize(
    ("member_id", "generation", "in_time"), [("a-1", 2, True), ("a-1", 3, False), ("a-2", 2, False)]
)
def test_a_generation_that_was_joined_before_a_reset_may_be_completed_after_it(
    member_id: str, generation: int, in_time: bool
) -> None:
    """Its members look up where to start before they fetch; meanwhile a heartbeat is refused."""
    reset = RejoinRequested("g", "a", "a-1", 2, "UNKNOWN_MEMBER_ID")
    late = (0, r.taken(member_id, "t-1", generation=generation))
    found = check([*BOTH, (0, r.taken("a-1", "t-0")), (0, reset), late])
    assert (found.verdicts[LOST_IS_GONE] == HELD) is in_time
    again = (0, r.taken("a-2", generation=3))
    rows: list[Row] = [*BOTH, (0, r.taken("a-1", "t-0")), (0, reset), late]
    assert check([*rows, again]).verdicts[LOST_IS_GONE] != HELD
    given_up: Row = (0, r.lost("a", "t-0", "t-1"))
    assert (check([*rows, given_up, again]).verdicts[LOST_IS_GONE] == HELD) is in_time


def test_a_process_that_has_closed_owns_nothing_though_its_member_is_still_in_the_group() -> None:
    """A static member closes without a LeaveGroup."""
    rows: list[Row] = [*BOTH, (0, r.taken("a-1", "t-0")), (0, r.closed("a-1")), (0, r.taken("b-1", "t-0"))]
    assert check(rows).verdicts[ONE_OWNER] == HELD


@pytest.mark.parametrize("partition", ["t-0", "t-1"])
def test_a_partition_that_two_members_owned_for_a_while_has_one_owner_when_one_of_them_is_gone(
    partition: str,
) -> None:
    """b takes t-0 while a is a zombie; a loses it, joins again and is given the partition."""
    rows: list[Row] = [
        *BOTH,
        (0, r.taken("a-1", "t-0")),
        (0, r.removed("a-1")),
        (0, r.taken("b-1", "t-0", generation=2)),
        (0, r.lost("a", "t-0")),
        (0, r.added("a-2")),
        (0, r.taken("a-2", partition, generation=2)),
    ]
    expected = "t-0 is owned by a and b in generation 2" if partition == "t-0" else HELD
    assert check(rows).verdicts[ONE_OWNER] == expected
