"""The rows of a consumer group reach every check that they are about; each test has a fault or an excuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from groupstorm.coordinator.records import AppendCause
from groupstorm.storms.checks import verdicts
from groupstorm.storms.checks.commits import Appends
from groupstorm.storms.checks.invariants import InvariantChecks, longest_silence_us
from groupstorm.storms.checks.membership import MembershipChecks, RequestChecks
from groupstorm.storms.checks.verdicts import Verdicts
from groupstorm.storms.scenario.settings import Settings
from groupstorm.storms.scenario.steps import FAILING_APPENDS, Step
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events.scenario import StepTaken
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source
from tests.storms.checks import rows as r
from tests.storms.checks.rows import World

BEGINS_TO_FAIL = StepTaken("g", None, FAILING_APPENDS, "")
FAILED = events.AppendFailed("g", "NOT_ENOUGH_REPLICAS", AppendCause.MEMBER_HEARTBEAT)
CREATED = events.GroupCreated("g", "join")
REMOVED = events.MemberRemoved("g", "a", "a-1", None, 1, "left")
CLOSED = r.state("PreparingRebalance", "CompletingRebalance", 2, "all-joined", leader="a-1")


def broken(rows: Sequence[TracedEvent]) -> set[str]:
    """The invariants that do not hold in a group that has settled; no process is there that could live."""
    checks = InvariantChecks(consumer_groups=True)
    for row in rows:
        checks.add(0, Source.COORDINATOR, row)
    checks.finish(World(), 0)
    return set(checks.violations) - {verdicts.MEMBERS_LIVE}


@pytest.mark.parametrize(
    ("rows", "invariants"),
    [
        ([r.reconciled("a-1", "t-0"), r.reconciled("b-1", "t-0")], {verdicts.TWO_HOLDERS}),
        ([r.reconciled("a-1", "t-0"), REMOVED, r.reconciled("b-1", "t-0")], set()),
        ([r.reconciled("a-1", "t-0"), r.replaced("a-1", "a-2"), r.reconciled("b-1", "t-0")], set()),
        ([r.reconciled("a-1", "t-0"), FAILED, r.reconciled("b-1", "t-0")], set()),
        (
            [r.reconciled("a-1", "t-0"), events.GroupDeleted("g", "unloaded"), r.reconciled("b-1", "t-0")],
            set(),
        ),
        # an empty group is deleted if a member of the other protocol joins it, and another one begins
        ([events.GroupEpochBumped("g", 7), CREATED, events.GroupEpochBumped("g", 2)], set()),
    ],
)
def test_who_holds_what_and_at_which_epoch(rows: list[TracedEvent], invariants: set[str]) -> None:
    assert broken(rows) == invariants


ASSIGNING = r.state("Empty", "Assigning", 1, "heartbeat")
ROUND = [
    r.state("Empty", "PreparingRebalance", 0, "pending-member"),
    r.state("PreparingRebalance", "CompletingRebalance", 1, "initial-delay"),
]
FROM_EMPTY = r.state("Empty", "PreparingRebalance", 1, "pending-member")


def test_a_failed_write_undoes_the_state_of_a_consumer_group_alone() -> None:
    assert broken([ASSIGNING, ASSIGNING]) == {verdicts.STATES}
    assert broken([ASSIGNING, FAILED, ASSIGNING]) == set()
    assert verdicts.STATES in broken([*ROUND, FAILED, FROM_EMPTY])
    assert verdicts.STATES in broken([FAILED, ROUND[1]]), "which it is not at first"


def test_a_consumer_group_becomes_a_classic_one_in_stable_whatever_state_it_was_in() -> None:
    """It was in Assigning."""
    prepares = r.state("Stable", "PreparingRebalance", 1, "downgraded")
    assert broken([ASSIGNING, events.GroupConverted("g", 1, "downgraded"), prepares]) == set()
    assert verdicts.STATES in broken([ASSIGNING, prepares])


def test_a_group_whose_downgrade_is_not_written_is_a_consumer_group_again() -> None:
    converted = events.GroupConverted("g", 1, "downgraded")
    prepares = r.state("Stable", "PreparingRebalance", 1, "downgraded")
    left = r.state("Reconciling", "Assigning", 1, "left")
    for cause, invariants in (("group-downgraded", set()), ("generation", {verdicts.STATES})):
        failed = events.AppendFailed("g", "NOT_ENOUGH_REPLICAS", cause)
        assert broken([ASSIGNING, converted, prepares, failed, left]) == invariants


def followed(members: set[str], *steps: Step) -> MembershipChecks:
    found = Verdicts()
    return MembershipChecks(found, members, RequestChecks(found), None, Appends(10, steps))


def while_writes_fail(members: set[str]) -> MembershipChecks:
    checks = followed(members, failing())
    checks.step_taken(0, BEGINS_TO_FAIL)
    return checks


def failing() -> Step:
    return Step(at_ms=0, do=FAILING_APPENDS, for_ms=100)


def test_a_member_whose_removal_is_not_written_is_back() -> None:
    members = {"a-1"}
    checks = while_writes_fail(members)
    checks.removed(0, REMOVED)
    assert members == set()
    checks.consumer_group_reverted(9_999)
    assert members == set(), "the write takes 10 ms"
    checks.consumer_group_reverted(10_000)
    assert members == {"a-1"}


def test_a_member_whose_new_id_is_not_written_has_its_old_one_back() -> None:
    members = {"a-1"}
    checks = while_writes_fail(members)
    checks.replaced(0, r.replaced("a-1", "a-2"))
    assert members == {"a-2"}
    checks.consumer_group_reverted(10_000)
    assert members == {"a-1"}


@pytest.mark.parametrize(("cause", "left"), [("upgraded", {"a-1"}), ("downgraded", set())])
def test_a_member_that_joined_before_its_classic_group_was_converted_stays_if_the_write_fails(
    cause: str, left: set[str]
) -> None:
    members = set[str]()
    checks = while_writes_fail(members)
    checks.added(0, r.added("a-1"))
    checks.converted(5_000, events.GroupConverted("g", 2, cause))
    checks.added(5_000, r.added("b-1"))
    checks.consumer_group_reverted(15_000)
    assert members == left


def test_who_joins_behind_a_failing_write_of_the_group_is_out_when_it_has_failed() -> None:
    members = set[str]()
    checks = while_writes_fail(members)
    checks.consumer_group_written(99_999)
    checks.added(100_000, r.added("a-1"))
    checks.consumer_group_reverted(109_999)
    assert members == set()


def test_a_failing_write_of_a_coordinator_that_is_gone_undoes_nothing() -> None:
    members = {"a-1"}
    checks = while_writes_fail(members)
    checks.removed(0, REMOVED)
    checks.group_deleted(5_000, events.GroupDeleted("g", "unloaded"))
    members.clear()
    checks.consumer_group_reverted(10_000)
    assert members == set()


@pytest.mark.parametrize("then", ["", "heard again", "another coordinator"])
def test_a_member_whose_removal_is_not_written_has_no_session_until_it_is_heard_again(then: str) -> None:
    members = {"a-1"}
    found = Verdicts()
    checks = MembershipChecks(found, members, RequestChecks(found), 1_000, Appends(10, (failing(),)))
    checks.started(0, r.started("a"))
    checks.paused(0, r.paused("a-1"))
    checks.step_taken(0, BEGINS_TO_FAIL)
    checks.removed(900, REMOVED)
    checks.consumer_group_reverted(10_000)
    if then == "heard again":
        checks.resumed(20_000, r.resumed("a-1"))
        checks.paused(30_000, r.paused("a-1"))
    elif then == "another coordinator":
        checks.created(20_000, events.GroupCreated("g", "loaded"))
    checks.resumed(40_000, r.resumed("a-1"))
    assert (found.of[verdicts.SILENCE] == verdicts.HELD) is (not then)


@pytest.mark.parametrize("how", ["crashed", "paused"])
@pytest.mark.parametrize(("is_writing", "silent_us"), [(True, 41_000), (False, 31_000)])
def test_a_request_of_the_dead_may_be_read_when_the_writes_under_way_have_ended(
    how: str, is_writing: bool, silent_us: int
) -> None:
    """Each write takes 10 ms, the session 1 ms. Two writes begin at 20 ms and 25 ms, a dies at 30 ms."""
    for late_us in (0, 1):
        found = Verdicts()
        checks = MembershipChecks(found, {"a-1"}, RequestChecks(found), 1_000, Appends(10))
        checks.started(0, r.started("a"))
        if is_writing:
            checks.consumer_group_written(20_000)
            checks.reconciled(30_000, r.reconciled("b-1"))
        if how == "crashed":
            checks.crashed(30_000, r.crashed("a-1"))
            checks.removed(silent_us + late_us, REMOVED)
        else:
            checks.paused(30_000, r.paused("a-1"))
            checks.resumed(silent_us + late_us, r.resumed("a-1"))
        assert (found.of[verdicts.SILENCE] == verdicts.HELD) is not bool(late_us)


def test_a_heartbeat_that_brings_a_member_further_begins_its_session_when_it_is_written() -> None:
    for late_us in (0, 1):
        found = Verdicts()
        checks = MembershipChecks(found, {"a-1"}, RequestChecks(found), 1_000, Appends(10))
        checks.started(0, r.started("a"))
        checks.crashed(0, r.crashed("a-1"))
        checks.reconciled(500, r.reconciled("a-1"))
        checks.removed(11_000 + late_us, REMOVED)
        assert (found.of[verdicts.SILENCE] == verdicts.HELD) is not bool(late_us)


@pytest.mark.parametrize(("fails", "loaded"), [(False, {"a-1"}), (True, set())])
def test_another_coordinator_loads_what_was_written(fails: bool, loaded: set[str]) -> None:
    members = {"a-1"}
    checks = while_writes_fail(members) if fails else followed(members)
    checks.state_changed(0, CLOSED)
    checks.log.sync_parked(0, r.sync_parked("a-1"))
    checks.group_deleted(10_000, events.GroupDeleted("g", "unloaded"))
    assert members == loaded


def test_what_was_under_way_when_a_coordinator_went_is_not_loaded_by_a_later_one() -> None:
    members = {"a-1"}
    checks = followed(members)
    checks.consumer_group_written(0)
    for time_us in (5_000, 20_000):
        checks.group_deleted(time_us, events.GroupDeleted("g", "unloaded"))
        assert members == set()


@pytest.mark.parametrize(("cause", "loaded"), [("downgraded", {"b-1"}), ("upgraded", set())])
def test_a_downgrade_is_written_and_an_upgrade_with_what_follows_it(cause: str, loaded: set[str]) -> None:
    members = {"b-1"}
    checks = followed(members)
    checks.converted(0, events.GroupConverted("g", 3, cause))
    members.clear()
    checks.group_deleted(20_000, events.GroupDeleted("g", "unloaded"))
    assert members == loaded


@pytest.mark.parametrize(
    ("cause", "is_in"),
    [
        (AppendCause.MEMBER_HEARTBEAT, False),
        (AppendCause.MEMBERS_REMOVED, False),
        (AppendCause.GROUP_DOWNGRADED, False),
        (AppendCause.GENERATION, True),
    ],
)
def test_whose_join_to_a_consumer_group_is_not_written_is_out(cause: AppendCause, is_in: bool) -> None:
    checks = InvariantChecks(appends=Appends(10, (failing(),)), consumer_groups=True)
    for time_us, row in (
        (0, BEGINS_TO_FAIL),
        (0, r.added("a-1")),
        (10_000, events.AppendFailed("g", "NOT_ENOUGH_REPLICAS", cause)),
    ):
        checks.add(time_us, Source.COORDINATOR, row)
    checks.finish(World(), 10_000)
    assert (verdicts.MEMBERS_LIVE in checks.violations) == is_in


@pytest.mark.parametrize(
    ("own", "silence_us"),
    [({"session.timeout.ms": 10_000}, 10_001_000), ({"group.protocol": "consumer"}, 50_001_000)],
)
def test_the_session_timeout_of_the_group_counts_for_consumer_groups(
    own: dict[str, Any], silence_us: int
) -> None:
    group = {"group.consumer.session.timeout.ms": 50_000, "net_latency_ms": 0}
    assert longest_silence_us(Settings(("", group | own))) == silence_us


@pytest.mark.parametrize("written", [events.GroupEpochBumped("g", 2), r.reconciled("a-1", "t-0"), None])
def test_a_change_of_a_consumer_group_writes_its_members(written: TracedEvent | None) -> None:
    checks = InvariantChecks(consumer_groups=True)
    for row in (r.added("a-1"), written, events.GroupDeleted("g", "unloaded")):
        if row is not None:
            checks.add(0, Source.COORDINATOR, row)
    checks.finish(World(), 0)
    assert (verdicts.MEMBERS_LIVE in checks.violations) == (written is not None)
