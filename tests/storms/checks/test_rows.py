"""Each check alone, on rows written by hand: the last rows that hold, and the first that do not."""

from __future__ import annotations

import pytest

from groupstorm.storms.checks.ownership import RESETS
from groupstorm.storms.checks.verdicts import (
    ASSIGNED_ONLY,
    HELD,
    LOST_IS_GONE,
    NO_OPERATION_FAILED,
    ONE_OWNER,
    PARKED,
    SILENCE,
    Verdicts,
    listed,
)
from groupstorm.trace.events.coordinator import GroupConverted, GroupCreated, GroupDeleted, OperationFailed
from tests.storms.checks import rows as r
from tests.storms.checks.rows import Row, check

PREPARE = (0, r.state("Stable", "PreparingRebalance", 1, "left"))
COMPLETE = (0, r.state("PreparingRebalance", "CompletingRebalance", 2, "all-joined", leader="a-1"))
STABLE = (0, r.state("CompletingRebalance", "Stable", 2, "assigned"))


def said(rows: list[Row], invariant: str, silence_us: int | None = None) -> str:
    return check(rows, silence_us).verdicts[invariant]


# -- requests --------------------------------------------------------------------------------------

FOUR_JOIN: list[Row] = [(0, r.join_parked(f"{process}-1")) for process in "dcba"]
PARKED_CASES: list[tuple[list[Row], str]] = [
    ([PREPARE, (0, r.join_parked("a-1")), COMPLETE, (0, r.join_answered("a-1")), STABLE], HELD),
    ([PREPARE, (0, r.join_parked("a-1")), COMPLETE], HELD),  # the phase has just ended
    ([PREPARE, (0, r.join_parked("a-1")), COMPLETE, STABLE],
     "the coordinator never answered the JoinGroup of a"),
    ([PREPARE, *FOUR_JOIN, COMPLETE, (0, r.join_answered("b-1")), STABLE],
     "the coordinator never answered the JoinGroup of a, c, d"),
    ([COMPLETE, (0, r.sync_parked("a-1")), STABLE, (0, r.sync_answered("a-1")), PREPARE], HELD),
    ([COMPLETE, (0, r.sync_parked("a-1")), STABLE], HELD),
    ([COMPLETE, (0, r.sync_parked("a-1")), STABLE, PREPARE],
     "the coordinator never answered the SyncGroup of a"),
    # Kafka does not answer the SyncGroup of a member that it removes, before or after the phase's end
    ([COMPLETE, (0, r.sync_parked("a-1")), (0, r.removed("a-1")), STABLE, PREPARE], HELD),
    ([COMPLETE, (0, r.sync_parked("a-1")), STABLE, (0, r.removed("a-1")), PREPARE], HELD),
    # a request that is answered before the phase ends
    ([COMPLETE, (0, r.sync_parked("a-1")), (0, r.sync_answered("a-1")), STABLE, PREPARE], HELD),
    ([PREPARE, (0, r.join_parked("a-1")), (0, r.join_answered("a-1")), COMPLETE, STABLE], HELD),
    # a static member that comes back to a Stable group: its join waits for a write, in no phase
    ([STABLE, (0, r.join_parked("a-1")), PREPARE, COMPLETE, (0, r.join_answered("a-1")), STABLE], HELD),
    # a group that could not be written: the response has no id
    ([PREPARE, (0, r.join_parked("a-1")), (0, r.join_answered("", "x")), COMPLETE, STABLE],
     "the coordinator never answered the JoinGroup of a"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "sentence"), PARKED_CASES)
def test_requests_that_are_parked(rows: list[Row], sentence: str) -> None:
    assert said(rows, PARKED) == sentence


def test_a_response_without_an_id_is_for_the_parked_join_of_that_name() -> None:
    answer = r.join_answered("a-1", "COORDINATOR_NOT_AVAILABLE")._replace(member_id="")
    both: list[Row] = [
        PREPARE,
        (0, r.join_parked("a-1")),
        (0, r.join_parked("b-1")),
        (0, answer),
        COMPLETE,
        STABLE,
    ]
    assert said(both, PARKED) == "the coordinator never answered the JoinGroup of b"
    late: list[Row] = [PREPARE, (0, r.join_parked("a-1")), COMPLETE, (0, answer), STABLE]
    assert said(late, PARKED) == HELD


# -- membership ------------------------------------------------------------------------------------

IN_GROUP: list[Row] = [
    (0, r.started("a")),
    (0, r.added("a-1")),
    (0, r.join_answered("a-1")),
    (0, r.taken("a-1")),
]
LIMIT_US = 1_000


CRASHED: Row = (5, r.crashed("a-1"))
PAUSED: Row = (5, r.paused("a-1"))
WRITTEN: list[Row] = [COMPLETE, (1, r.sync_parked("a-1")), (1, r.sync_answered("a-1")), (1, STABLE[1])]
UNLOADED: Row = (400, GroupDeleted("g", "unloaded"))


def removed(after_us: int) -> Row:
    return (after_us + LIMIT_US, r.removed("a-1"))


@pytest.mark.parametrize(
    ("rows", "since_us"),
    [
        ([CRASHED], 5),
        # a process that dies while it stands still is silent since then
        ([PAUSED, (900, r.crashed("a-1"))], 5),
        # a response begins the session again
        ([CRASHED, (500, r.join_answered("a-1"))], 500),
        ([CRASHED, (500, r.sync_answered("a-1"))], 500),
        ([CRASHED, (500, r.reconciled("a-1"))], 500),
        # so does a round that closes, and not one that begins
        ([CRASHED, (500, COMPLETE[1])], 500),
        ([CRASHED, (500, PREPARE[1])], 5),
        # or a group that becomes one of the other kind
        ([CRASHED, (500, GroupConverted("g", 3, "upgraded"))], 500),
        ([CRASHED, (500, GroupConverted("g", 3, "downgraded"))], 500),
        # or a load, of the members that were written
        ([*WRITTEN, CRASHED, UNLOADED, (500, GroupCreated("g", "loaded"))], 500),
        ([*WRITTEN, CRASHED, (500, GroupCreated("g", "join"))], 5),
    ],
)
def test_a_silent_member_is_removed_within_its_session(rows: list[Row], since_us: int) -> None:
    assert said([*IN_GROUP, *rows, removed(since_us)], SILENCE, LIMIT_US) == HELD
    assert said([*IN_GROUP, *rows, removed(since_us + 1)], SILENCE, LIMIT_US) != HELD


@pytest.mark.parametrize(
    ("rows", "held"),
    [
        ([PAUSED, (5 + LIMIT_US, r.resumed("a-1"))], True),
        ([PAUSED, (6 + LIMIT_US, r.resumed("a-1"))], False),
        ([PAUSED, (9, r.removed("a-1")), (9_000, r.resumed("a-1"))], True),
        ([(5, r.paused("a-1", "slow-batch")), (9_000, r.resumed("a-1"))], True),
        # a second pause begins its own silence
        ([PAUSED, (900, r.resumed("a-1")), (1_800, r.resumed("a-1"))], True),
        ([PAUSED, (900, r.resumed("a-1")), (901, r.paused("a-1")), (1_800, r.resumed("a-1"))], True),
        # a member whose request is parked has no session
        ([(1, r.join_parked("a-1")), PAUSED, (9_000, r.resumed("a-1"))], True),
        ([(1, r.sync_parked("a-1")), PAUSED, (9_000, r.resumed("a-1"))], True),
        # a static member that is back is silent no more
        ([CRASHED, (900, r.replaced("a-1", "a-2")), (9_000, r.removed("a-2"))], True),
    ],
)
def test_who_may_be_silent_for_longer(rows: list[Row], held: bool) -> None:
    assert (said([*IN_GROUP, *rows], SILENCE, LIMIT_US) == HELD) is held


def test_the_sentence_on_silence_names_both_times() -> None:
    rows = [*IN_GROUP, (0, r.paused("a-1")), (2_500_000, r.resumed("a-1"))]
    assert said(rows, SILENCE, 1_000_000) == (
        "a was silent for 2.5 s and still in the group: session.timeout.ms and the way of a request are 1 s"
    )
    assert said(rows, SILENCE) == HELD, "nobody checks"


# -- ownership -------------------------------------------------------------------------------------

BOTH: list[Row] = [
    (0, r.started("a")), (0, r.started("b")), (0, r.added("a-1")), (0, r.added("b-1")),
]  # fmt: skip
A_HAS_IT = (0, r.taken("a-1", "t-0"))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([A_HAS_IT, (0, r.taken("b-1", "t-0"))], "t-0 is owned by a and b in generation 1"),
        ([A_HAS_IT, (0, r.taken("b-1", "t-1"))], HELD),
        ([A_HAS_IT, (0, r.taken("b-1", "t-0", generation=2))], HELD),  # a does not know it yet
        (
            [A_HAS_IT, (0, r.taken("b-1", "t-0", generation=2)), (0, r.taken("a-1", generation=2))],
            "t-0 is owned by a and b in generation 2",
        ),
        ([A_HAS_IT, (0, r.removed("a-1")), (0, r.taken("b-1", "t-0"))], HELD),  # a zombie
        ([A_HAS_IT, (0, r.removed("b-1")), (0, r.taken("b-1", "t-0"))], HELD),
        ([A_HAS_IT, (0, r.revoked("a-1", "t-0")), (0, r.taken("b-1", "t-0"))], HELD),
        ([A_HAS_IT, (0, r.crashed("a-1")), (0, r.taken("b-1", "t-0"))], HELD),
        ([A_HAS_IT, (0, r.taken("a-1", "t-0"))], HELD),  # once more the same one
    ],
)
def test_owners_of_one_generation(rows: list[Row], sentence: str) -> None:
    assert said([*BOTH, *rows], ONE_OWNER) == sentence


def test_two_owners_are_looked_at_once_more_at_the_end() -> None:
    rows = [*BOTH, A_HAS_IT, (0, r.removed("b-1")), (0, r.taken("b-1", "t-0")), (0, r.added("b-1"))]
    checks = check(rows)
    assert checks.verdicts[ONE_OWNER] == HELD
    checks.finish(r.World(), 0)
    assert checks.verdicts[ONE_OWNER] == "t-0 is owned by a and b in generation 1"


def test_all_owners_of_one_generation_are_named() -> None:
    rows = [(0, row) for each in "abc" for row in (r.started(each), r.taken(f"{each}-1", "t-0"))]
    checks = check([*rows, *((0, r.added(f"{each}-1")) for each in "cba")])
    checks.finish(r.World(), 0)
    assert checks.verdicts[ONE_OWNER] == "t-0 is owned by a and b and c in generation 1"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([(0, r.sync_answered("a-1", "t-0")), A_HAS_IT], HELD),
        (
            [(0, r.sync_answered("a-1", "t-1")), A_HAS_IT],
            "a owns t-0 in generation 1, which assigns it to others or to nobody",
        ),
        ([(0, r.sync_answered("a-1", error="x")), A_HAS_IT], HELD),
        ([(0, r.sync_answered("a-1", generation=2)), A_HAS_IT], HELD),  # not completed yet
        ([(0, r.sync_answered("a-1")), (0, r.taken("a-1"))], HELD),
        (
            [(0, r.sync_answered("a-1", "t-0", generation=0)), (0, r.sync_answered("a-1")), A_HAS_IT],
            "a owns t-0 in generation 1, which assigns it to others or to nobody",
        ),
    ],
)
def test_members_own_what_they_were_assigned(rows: list[Row], sentence: str) -> None:
    assert said([*BOTH, *rows], ASSIGNED_ONLY) == sentence


def test_an_assignment_may_be_completed_behind_a_later_one_of_the_generation_but_not_kept() -> None:
    """As by a member of a consumer group, whose epoch stays the same until it has given its partitions up."""
    checks = check([*BOTH, (0, r.sync_answered("a-1", "t-0")), (0, r.sync_answered("a-1")), A_HAS_IT])
    assert checks.verdicts[ASSIGNED_ONLY] == HELD
    checks.finish(r.World(), 0)
    assert "a owns t-0 in generation 1" in checks.verdicts[ASSIGNED_ONLY]


@pytest.mark.parametrize("cause", sorted(RESETS))
def test_after_a_reset_partitions_are_lost_before_another_generation_is_completed(cause: str) -> None:
    reset = (0, r.rejoin("a-1", cause))
    again = (0, r.taken("a-1", generation=2))
    assert said([*BOTH, A_HAS_IT, reset, (0, r.lost("a", "t-0")), again], LOST_IS_GONE) == HELD
    assert said([*BOTH, A_HAS_IT, reset, again], LOST_IS_GONE) == (
        f"a completed generation 2 and still owned t-0, which it had lost ({cause})"
    )
    assert said([*BOTH, A_HAS_IT, reset, (0, r.revoked("a-1", "t-0"))], LOST_IS_GONE) == (
        f"a revoked t-0, which it had lost before ({cause})"
    )
    part = [*BOTH, (0, r.taken("a-1", "t-0", "t-1")), reset, (0, r.lost("a", "t-0")), again]
    assert "still owned t-1" in said(part, LOST_IS_GONE)
    nothing = [*BOTH, reset, A_HAS_IT, (0, r.taken("a-1", generation=2))]
    assert said(nothing, LOST_IS_GONE) == HELD, "there was nothing to lose"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([(0, r.rejoin("a-1", "group-rebalancing")), (0, r.taken("a-1", generation=2))], HELD),
        ([(0, r.revoked("a-1", "t-0"))], HELD),
        ([(0, r.taken("a-2", generation=2))],
         "a completed generation 2 and still owned t-0, which it had lost (it has a new member id)"),
        ([(0, r.revoked("a-2", "t-0"))], "a revoked t-0, which it had lost before (it has a new member id)"),
        ([(0, r.revoked("a-1", "t-0", generation=-1))],
         "a revoked t-0, which it had lost before (it has left)"),
        # a listener's call that was due while it was a member
        ([(0, r.reconciled("a-1", "t-1")), (0, r.revoked("a-1", "t-0", generation=-1))], HELD),
        ([(0, r.reconciled("a-1", "t-0")), (0, r.revoked("a-1", "t-0", generation=-1))],
         "a revoked t-0, which it had lost before (it has left)"),
        ([(0, r.reconciled("a-1", "t-1")), (0, r.revoked("a-2", "t-0", generation=-1))],
         "a revoked t-0, which it had lost before (it has a new member id)"),
        ([(0, r.revoked("a-1", "t-0", generation=0))], HELD),  # -1 alone is no generation
        ([(0, r.revoked("a-2", "t-9"))], HELD),  # it never had it
        ([(0, r.taken("a-1", "t-1", generation=0))], HELD),  # a look-up of an earlier round
    ],
)  # fmt: skip
def test_a_member_revokes_only_as_long_as_it_is_one(rows: list[Row], sentence: str) -> None:
    assert said([*BOTH, A_HAS_IT, *rows], LOST_IS_GONE) == sentence


# -- states and verdicts ---------------------------------------------------------------------------


def test_the_coordinator_that_broke_off_is_said() -> None:
    checks = check([(0, OperationFailed("g", None, 7, "KeyError"))])
    assert checks.verdicts[NO_OPERATION_FAILED] == "the coordinator broke off in generation 7: KeyError"
    assert NO_OPERATION_FAILED not in check([]).verdicts


def test_the_first_sentence_stays() -> None:
    verdicts = Verdicts()
    verdicts.violated(PARKED, "one")
    verdicts.violated(PARKED, "two")
    assert verdicts.of[PARKED] == "one"
    assert (listed(["a", "b", "c"]), listed(["a", "b", "c", "d"])) == ("a, b, c", "a, b, c and 1 more")
