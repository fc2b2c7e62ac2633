"""Members in the log of the group, on rows written by hand: who is loaded after which write."""

from __future__ import annotations

import pytest

from groupstorm.storms.checks.written_members import Appends, UnwrittenChanges, WrittenMembers
from groupstorm.storms.scenario.steps import FAILING_APPENDS, Step
from groupstorm.trace.events.coordinator import GroupCreated
from groupstorm.trace.events.scenario import StepTaken
from tests.storms.checks import rows as r

CLOSED = r.state("PreparingRebalance", "CompletingRebalance", 2, "all-joined", leader="a-1")
STABLE = r.state("CompletingRebalance", "Stable", 2)
ROUND = r.state("Stable", "PreparingRebalance", 2, "static-member", member_id="a-2")


def closed(*members: str) -> WrittenMembers:
    """A round has closed."""
    log = WrittenMembers(set(members), Appends(10))
    log.state_changed(0, CLOSED)
    return log


def test_a_round_is_written_when_its_leader_has_assigned() -> None:
    log = closed("a-1", "b-1")
    log.sync_parked(1_000, r.sync_parked("b-1"))
    assert log.at(1_000_000) == set()
    log.sync_parked(5_999, r.sync_parked("a-1"))
    assert log.at(14_999) == set(), "the coordinator counts in milliseconds"
    assert log.at(15_000) == {"a-1", "b-1"}


def test_a_leader_that_syncs_in_a_stable_group_writes_nothing() -> None:
    log = closed("a-1")
    log.state_changed(0, STABLE)
    log.sync_parked(0, r.sync_parked("a-1"))
    assert log.at(1_000_000) == set()


def test_a_group_without_members_is_written() -> None:
    log = closed("a-1")
    log.sync_parked(0, r.sync_parked("a-1"))
    log.state_changed(20_000, r.state("PreparingRebalance", "Empty", 3, "no-members"))
    assert log.at(29_999) == {"a-1"}
    assert log.at(30_000) == set()


def test_a_group_that_is_created_is_written_and_one_that_is_loaded_is_not() -> None:
    for cause, loaded in (("join", set()), ("loaded", {"a-1"})):
        log = closed("a-1")
        log.sync_parked(0, r.sync_parked("a-1"))
        log.created(20_000, GroupCreated("g", cause))
        assert log.at(30_000) == loaded


def back(log: WrittenMembers, members: set[str]) -> None:
    """a comes back at 50 ms."""
    log.replaced(r.replaced("a-1", "a-2"))
    members.symmetric_difference_update({"a-1", "a-2"})
    log.join_parked(50_000, r.join_parked("a-2"))


@pytest.mark.parametrize(
    ("state", "loaded"), [("Stable", {"a-2", "b-1"}), ("CompletingRebalance", {"a-1", "b-1"})]
)
def test_the_new_id_of_a_static_member_is_written_at_once_if_the_group_is_stable(
    state: str, loaded: set[str]
) -> None:
    members = {"a-1", "b-1"}
    log = WrittenMembers(members, Appends(10))
    log.state_changed(0, CLOSED)
    log.sync_parked(0, r.sync_parked("a-1"))
    if state == "Stable":
        log.state_changed(10_000, STABLE)
    back(log, members)
    assert log.at(59_999) == {"a-1", "b-1"}
    assert log.at(60_000) == loaded


def test_a_static_member_that_opens_a_round_is_not_written_before_its_end() -> None:
    members = {"a-1"}
    log = WrittenMembers(members, Appends(10))
    log.state_changed(0, CLOSED)
    log.sync_parked(0, r.sync_parked("a-1"))
    log.state_changed(10_000, STABLE)
    back(log, members)
    log.state_changed(50_000, ROUND)
    assert log.at(1_000_000) == {"a-1"}


def test_a_member_that_only_joins_again_is_not_written() -> None:
    log = closed("a-1")
    log.state_changed(0, STABLE)
    log.join_parked(0, r.join_parked("a-1"))
    assert log.at(1_000_000) == set()


def taken(do: str) -> StepTaken:
    return StepTaken("g", None, do, "")


def test_a_write_that_fails_is_not_in_the_log_and_a_slow_one_holds_up_those_behind_it() -> None:
    steps = (Step(30, "failing-appends", for_ms=10), Step(20, "slow-appends", for_ms=10, append_ms=100))
    appends = Appends(10, steps)
    log = WrittenMembers({"a-1"}, appends)
    log.state_changed(0, CLOSED)
    appends.step_taken(20_000, taken("slow-appends"))
    log.sync_parked(29_999, r.sync_parked("a-1"))
    appends.step_taken(30_000, taken("failing-appends"))
    log.state_changed(39_999, r.state("PreparingRebalance", "Empty", 3, "no-members"))
    assert log.at(128_999) == set()
    assert log.at(129_000) == {"a-1"} == log.at(1_000_000)
    log.state_changed(40_000, r.state("PreparingRebalance", "Empty", 3, "no-members"))
    assert log.at(1_000_000) == set()


def test_other_steps_do_not_change_writes() -> None:
    appends = Appends(10, (Step(20, "slow-appends", for_ms=10, append_ms=100),))
    for do in ("failing-appends", "pause"):
        appends.step_taken(0, taken(do))
    assert (appends.takes_ms(0), appends.fails(0)) == (10, False)


def test_each_step_with_failing_writes_lasts_as_long_as_it_says() -> None:
    steps = (Step(0, FAILING_APPENDS, for_ms=100), Step(1_000, FAILING_APPENDS, for_ms=5_000))
    appends = Appends(10, steps)
    for at_us in (0, 1_000_000):
        appends.step_taken(at_us, taken(FAILING_APPENDS))
    assert appends.fails(5_999_999)
    assert not appends.fails(6_000_000)


# --- consumer groups: writes of 10 ms fail from 1 s to 2 s


def failing(*members: str) -> tuple[set[str], UnwrittenChanges]:
    appends = Appends(10, (Step(0, FAILING_APPENDS, for_ms=1_000),))
    appends.step_taken(1_000_000, taken(FAILING_APPENDS))
    found = set(members)
    return found, UnwrittenChanges(found, appends)


def test_what_a_failing_write_changed_is_undone_when_it_has_failed() -> None:
    members, changes = failing("a", "new")
    changes.changed(1_000_000, "new", joined=True)
    changes.changed(1_004_000, "gone", joined=False)
    assert changes.append_failed(1_009_999) == set()
    assert members == {"a", "new"}
    assert changes.append_failed(1_010_000) == {"gone"}, "it left in a later write"
    assert members == {"a", "gone"}
    changes.changed(1_012_000, "b", joined=False)
    assert changes.append_failed(1_014_000) == set(), "which fails, but was undone"
    assert members == {"a", "gone"}
    assert changes.append_failed(1_022_000) == {"b"}
    assert members == {"a", "gone", "b"}


def test_a_write_fails_with_an_earlier_one_under_way_and_not_with_one_that_has_failed() -> None:
    """That of 1,999 ms fails at 2,009 ms, and with it that of 2,000 ms, which ends at 2,010 ms."""
    members, changes = failing("a", "early", "late")
    changes.changed(1_999_000, "early", joined=True)
    changes.changed(2_000_000, "late", joined=True)
    changes.append_failed(2_009_000)
    assert members == {"a"}
    members.add("again")
    changes.changed(2_009_500, "again", joined=True)
    changes.append_failed(2_010_000)
    assert members == {"a", "again"}
    changes.append_failed(2_019_000)
    assert members == {"a", "again"}


def test_all_that_one_write_changes_is_undone() -> None:
    members, changes = failing("a", "new", "newer")
    for member_id in ("new", "newer"):
        changes.changed(1_000_000, member_id, joined=True)
    changes.append_failed(1_010_000)
    assert members == {"a"}


def test_writes_are_kept_as_long_as_one_of_them_can_be_undone() -> None:
    _, changes = failing()
    changes.written(1_995_000)
    changes.written(1_999_000)
    changes.append_failed(2_005_000)
    assert changes.written(2_006_000) is not None, "that of 1,999 ms has still to fail"
    changes.append_failed(2_009_000)
    assert changes.written(2_020_000) is None


def test_a_write_without_members_that_fails_takes_later_ones_along() -> None:
    members, changes = failing("a")
    changes.written(1_999_000)
    members.add("late")
    changes.changed(2_000_000, "late", joined=True)
    changes.append_failed(2_009_000)
    assert members == {"a"}


def test_a_write_that_began_before_the_one_that_fails_stays() -> None:
    appends = Appends(10, (Step(0, FAILING_APPENDS, for_ms=1_000),))
    members = {"a", "early"}
    changes = UnwrittenChanges(members, appends)
    changes.changed(999_999, "early", joined=True)
    appends.step_taken(1_000_000, taken(FAILING_APPENDS))
    changes.changed(1_000_000, "a", joined=False)
    members.discard("a")
    assert changes.append_failed(1_010_000) == {"a"}
    assert members == {"a", "early"}


def test_of_two_changes_of_a_member_the_last_is_undone_first() -> None:
    members, changes = failing("a")
    changes.changed(1_000_000, "a", joined=False)
    changes.changed(1_001_000, "a", joined=True)
    assert changes.append_failed(1_020_000) == {"a"}
    assert members == {"a"}


def test_who_joined_and_left_in_writes_that_fail_is_not_back() -> None:
    members, changes = failing()
    changes.changed(1_000_000, "new", joined=True)
    changes.changed(1_001_000, "new", joined=False)
    assert changes.append_failed(1_020_000) == set()
    assert members == set()


def test_a_change_is_undone_once() -> None:
    members, changes = failing("a", "new")
    changes.changed(1_000_000, "new", joined=True)
    changes.append_failed(1_010_000)
    members.add("new")  # it has joined again, and that was written
    changes.append_failed(1_012_000)
    assert members == {"a", "new"}


def test_a_static_member_that_opens_a_round_before_anything_was_written_takes_nothing_back() -> None:
    log = closed("a-1")
    log.state_changed(1_000, ROUND)
    assert log.at(1_000_000) == set()


def test_every_write_of_a_consumer_group_has_the_members_of_its_time() -> None:
    members = {"a"}
    log = WrittenMembers(members, Appends(10))
    log.consumer_group_written(0)
    log.consumer_group_written(5_000)
    members.add("b")
    log.consumer_group_written(6_000)
    members.discard("a")
    log.consumer_group_written(7_000)
    assert log.at(9_999) == frozenset()
    assert log.at(15_000) == {"a"}
    assert log.at(16_000) == {"a", "b"}
    assert log.at(17_000) == {"b"}
