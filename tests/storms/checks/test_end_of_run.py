"""The checks at the end of a run, on a world written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.settling import kafkas_own
from groupstorm.storms.checks.verdicts import (
    CO_PARTITIONED,
    HELD,
    MEMBERS_LIVE,
    NO_OPERATION_FAILED,
    ONE_OWNER,
    OWNED_AT_END,
    PARKED,
    SETTLES,
    SILENCE,
    WORKS_ON_OWN,
    Verdicts,
)
from groupstorm.trace.events.coordinator import GroupCreated, GroupDeleted
from groupstorm.trace.events.scenario import PartitionsCreated, StepTaken
from tests.storms.checks import rows as r
from tests.storms.checks.rows import Row, World, check

LIMIT_US = 1_000
T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in ("t", "u") for number in (0, 1))


def broken(
    rows: Sequence[Row], world: World, now_us: int = 0, silence_us: int | None = None
) -> dict[str, str]:
    checks = check(rows, silence_us)
    checks.finish(world, now_us)
    return checks.violations


A_OWNS_T0: list[Row] = [(0, r.started("a")), (0, r.added("a-1")), (0, r.taken("a-1", "t-0"))]


def test_a_settled_group_whose_members_own_everything_breaks_nothing() -> None:
    assert broken(A_OWNS_T0, World({"a": (T0,)}, partitions=(T0,))) == {}


def test_a_group_that_has_not_settled_is_found() -> None:
    assert broken([], World(settled=False)) == {SETTLES: "the group had not settled when the scenario ended"}


def test_members_that_are_gone_and_never_expire_are_named() -> None:
    world = World({"c": (T0,)}, settled=False, left_behind=("b", "a"), partitions=(T0, T1))
    sentence = (
        "a removal was not written: a, b are gone, but the coordinator could not write that: the group keeps "
        "them as members without a session that could end, until another broker takes the group over"
    )
    found = {name: said for name, said in broken(A_OWNS_T0, world).items() if said == sentence}
    assert found.keys() == {SETTLES, OWNED_AT_END, MEMBERS_LIVE}
    assert kafkas_own(found) == sentence


def test_at_the_end_only_a_phase_that_lasts_may_hold_requests_back() -> None:
    rows: list[Row] = [
        (0, r.state("Empty", "PreparingRebalance", 0, "new-member")),
        (0, r.join_parked("a-1")),
        (0, r.state("PreparingRebalance", "CompletingRebalance", 1, "all-joined")),
    ]
    assert broken(rows[:2], World()) == {}
    assert broken(rows, World()) == {PARKED: "the coordinator never answered the JoinGroup of a"}


def test_requests_that_processes_still_wait_for_are_found() -> None:
    sentence = "still parked at the end: requests of a, b"
    assert broken([], World(unanswered=("b", "a", "b"))) == {PARKED: sentence}


def test_a_process_that_works_on_what_it_does_not_own_is_found() -> None:
    assert broken(A_OWNS_T0, World({"a": (T0, T1)})) == {
        WORKS_ON_OWN: "a processes t-1 at the end, but does not own them"
    }


def test_a_partition_that_nobody_works_on_is_found_if_any_process_has_started() -> None:
    assert broken(A_OWNS_T0, World({"a": (T0,)}, partitions=(T0, T1, U0))) == {
        OWNED_AT_END: "2 partitions have no owner at the end, t-1 among them"
    }
    assert broken([], World(partitions=(T0,))) == {}


def test_a_topic_to_which_no_member_subscribes_is_no_fault_of_an_assignor() -> None:
    world = World({"a": (T0,)}, partitions=(T0, U0, U1), topics=("t",))
    sentence = "no member subscribes to u: 2 partitions have no owner at the end, u-0 among them"
    found = broken(A_OWNS_T0, world)
    assert found == {OWNED_AT_END: sentence}
    assert kafkas_own(found) == sentence
    assert kafkas_own(broken(A_OWNS_T0, replace(world, partitions=(T0, T1, U0)))) is None, "nor has t-1"


def test_a_static_leader_that_comes_back_excuses_partitions_that_were_created_before_only() -> None:
    """Unless it says otherwise, a member joins with JoinGroup version 9 or above (KIP-814)."""
    leads = r.state("PreparingRebalance", "CompletingRebalance", 1, "all-joined")._replace(leader="a-1")
    rows: list[Row] = [
        (0, r.started("a")),
        (0, r.added("a-1")),
        (0, r.state("Empty", "PreparingRebalance", 0, "new-member")),
        (0, leads),
        (0, r.state("CompletingRebalance", "Stable")),
        (0, PartitionsCreated("g", ("t",), ("t-0",))),
        (0, r.replaced("a-1", "a-2")),
        (0, PartitionsCreated("g", ("t",), ("t-1",))),
        (0, r.taken("a-2")),
    ]
    assert broken(rows, World({"a": ()}, partitions=(T0,)))[OWNED_AT_END].startswith(
        "no new assignment for t-0"
    )
    assert broken(rows, World({"a": ()}, partitions=(T1,))) == {
        OWNED_AT_END: "1 partitions have no owner at the end, t-1 among them"
    }


NOT_WRITTEN = "a removal was not written: a is gone"
OUTLIVED = "a timer outlived its group: x"
SKIPPED = "no new assignment for t-1"


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ({}, None),
        ({SETTLES: HELD, NO_OPERATION_FAILED: OUTLIVED}, OUTLIVED),
        # of several the sentences are said, each once
        ({SETTLES: NOT_WRITTEN, MEMBERS_LIVE: NOT_WRITTEN}, NOT_WRITTEN),
        ({SETTLES: NOT_WRITTEN, NO_OPERATION_FAILED: OUTLIVED}, f"{NOT_WRITTEN}; {OUTLIVED}"),
        ({NO_OPERATION_FAILED: OUTLIVED, OWNED_AT_END: SKIPPED}, f"{OUTLIVED}; {SKIPPED}"),
        ({OWNED_AT_END: "2 partitions have no owner at the end"}, None),
        ({NO_OPERATION_FAILED: "the coordinator broke off in generation 1: x"}, None),
        # each invariant has defects of its own, and most have none
        ({SETTLES: "no new assignment: nobody owns t-0"}, None),
        ({ONE_OWNER: NOT_WRITTEN}, None),
        ({NO_OPERATION_FAILED: OUTLIVED, SETTLES: "livelock: 5 rounds in an hour"}, None),
    ],
)
def test_kafka_is_to_blame_if_every_broken_invariant_is_one_that_a_defect_of_it_breaks(
    verdicts: dict[str, str], said: str | None
) -> None:
    assert kafkas_own(verdicts) == said


# -- joins of topics -------------------------------------------------------------------------------


def torn(works: dict[str, tuple[TopicPartition, ...]]) -> str:
    checks = InvariantChecks(joins=True)
    checks.finish(World(works), 0)
    return checks.verdicts[CO_PARTITIONED]


def test_one_process_owns_the_partitions_of_one_number_if_topics_are_joined() -> None:
    assert torn({"a": (T0, U0), "b": (T1, U1)}) == HELD
    assert torn({"a": (T0, U1), "b": (T1, U0)}) == "2 joins are torn apart: t-0 is with a, u-0 with b"
    assert torn({"a": (T0, U0, T1), "b": (U1,)}) == "1 joins are torn apart: t-1 is with a, u-1 with b"


def test_joins_are_checked_only_if_topics_are_joined() -> None:
    assert CO_PARTITIONED not in InvariantChecks().verdicts
    assert CO_PARTITIONED not in Verdicts().of
    assert broken([], World({"a": (T0,), "b": (U0,)})).keys() == {WORKS_ON_OWN}


# -- members ---------------------------------------------------------------------------------------

DEAD = "a-1 is in the group at the end, but no process has this id"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (A_OWNS_T0, None),
        ([*A_OWNS_T0, (0, r.started("b"))], "b runs at the end, but is not in the group"),
        ([*A_OWNS_T0, (0, r.closed("a-1"))], DEAD),
        ([*A_OWNS_T0, (0, r.crashed("a-1"))], DEAD),
    ],
)
def test_at_the_end_of_a_group_at_rest_the_members_are_the_living(rows: list[Row], said: str | None) -> None:
    assert broken(rows, World()).get(MEMBERS_LIVE) == said
    assert MEMBERS_LIVE not in broken(rows, World(settled=False))


# -- members and coordinators ----------------------------------------------------------------------

LED_BY_A: list[Row] = [
    (0, r.started("a")),
    (0, r.added("a-1")),
    (0, r.state("PreparingRebalance", "CompletingRebalance", 1, "all-joined", leader="a-1")),
]
#: The leader's SyncGroup begins the write of the group.
WRITTEN: list[Row] = [
    *LED_BY_A,
    (0, r.sync_parked("a-1")),
    (0, r.state("CompletingRebalance", "Stable")),
    (0, r.sync_answered("a-1")),
]
UNLOADED: Row = (0, GroupDeleted("g", "unloaded"))


def test_the_next_coordinator_knows_a_static_member_by_the_id_with_which_it_was_answered() -> None:
    back: list[Row] = [*WRITTEN, (0, r.replaced("a-1", "a-2")), (0, r.join_parked("a-2"))]
    assert MEMBERS_LIVE not in broken([*back, UNLOADED, (0, r.taken("a-2"))], World())
    outside = "a runs at the end, but is not in the group"
    assert broken([*WRITTEN, UNLOADED, (0, r.taken("a-2"))], World())[MEMBERS_LIVE] == outside


def test_a_member_whose_write_landed_is_one_though_its_round_did_not_end() -> None:
    """The write takes longer than the SyncGroup waits for it (offsets.commit.timeout.ms)."""
    loaded: list[Row] = [UNLOADED, (0, r.taken("a-1"))]
    assert MEMBERS_LIVE in broken([*LED_BY_A, *loaded], World())
    assert MEMBERS_LIVE not in broken([*LED_BY_A, (0, r.sync_parked("a-1")), *loaded], World())


@pytest.mark.parametrize("at_end_us", [LIMIT_US, LIMIT_US + 1])
def test_a_member_that_was_never_answered_is_silent_since_it_crashed(at_end_us: int) -> None:
    rows: list[Row] = [(0, r.started("a")), (0, r.added("a-1")), (0, r.crashed("a-1"))]
    found = broken(rows, World(settled=False), at_end_us, LIMIT_US)
    assert (SILENCE in found) == (at_end_us > LIMIT_US)


def test_nobody_removes_a_member_while_there_is_no_coordinator() -> None:
    silent: list[Row] = [*WRITTEN, (0, r.crashed("a-1"))]

    def is_found(*rows: Row) -> bool:
        return SILENCE in broken([*silent, *rows], World(settled=False), 9_000, LIMIT_US)

    assert is_found((10, StepTaken("g", None, "pause", "")))
    dies: Row = (10, StepTaken("g", None, "coordinator-failover", ""))
    assert not is_found(dies)
    assert not is_found(dies, (8_000, GroupDeleted("g", "unloaded")), (8_000, GroupCreated("g", "loaded")))
    assert is_found(dies, (7_999, GroupDeleted("g", "unloaded")), (7_999, GroupCreated("g", "loaded")))


def test_an_old_id_that_is_put_back_has_a_new_session() -> None:
    """The new id of a static member could not be written. The coordinator puts the old one back, which
    nobody uses any more, and begins its session (GroupMetadataManager, KIP-345)."""
    rows: list[Row] = [
        *WRITTEN,
        (5, r.crashed("a-1")),
        (900, r.replaced("a-1", "a-2")),
        (950, r.replaced("a-2", "a-1")),
        (950 + LIMIT_US, r.removed("a-1")),
    ]
    assert check(rows, LIMIT_US).verdicts[SILENCE] == HELD
