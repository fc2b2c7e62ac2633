"""Members in the log of the group, on rows written by hand: who is loaded after which write."""

from __future__ import annotations

import pytest

from groupstorm.storms.checks.commits import Appends, UnwrittenChanges, WrittenMembers
from groupstorm.storms.scenario.steps import FAILING_APPENDS, Step
from groupstorm.trace.events.coordinator import GroupCreated
from groupstorm.trace.events.scenario import StepTaken
from tests.storms.checks import rows as r

CLOSED = r.state("PreparingRebalance", "CompletingRebalance", 2, "all-joined", leader="a-1")
STATES = {
    "Stable": r.state("CompletingRebalance", "Stable", 2),
    "Empty": r.state("PreparingRebalance", "Empty", 3, "no-members"),
    "round of a-2": r.state("Stable", "PreparingRebalance", 2, "static-member", member_id="a-2"),
}
#: Microseconds, what happens then or is asked, and of whom.
Happening = tuple[int, str, str]
WRITTEN: Happening = (0, "sync", "a-1")
BACK: Happening = (50_000, "is back", "a-1 a-2")


@pytest.mark.parametrize(
    ("members", "happenings"),
    [
        # a round is written when its leader has assigned; the coordinator counts in milliseconds
        ("a-1 b-1", [(1_000, "sync", "b-1"), (1_000_000, "loaded", ""), (5_999, "sync", "a-1"),
                     (14_999, "loaded", ""), (15_000, "loaded", "a-1 b-1")]),
        # a leader that syncs in a Stable group writes nothing, nor does a member that only joins again
        ("a-1", [(0, "state", "Stable"), WRITTEN, (1_000_000, "loaded", "")]),
        ("a-1", [(0, "state", "Stable"), (0, "join", "a-1"), (1_000_000, "loaded", "")]),
        # a group without members is written
        ("a-1", [WRITTEN, (20_000, "state", "Empty"), (29_999, "loaded", "a-1"), (30_000, "loaded", "")]),
        # so is one that is created, and not one that is loaded
        ("a-1", [WRITTEN, (20_000, "created", "join"), (30_000, "loaded", "")]),
        ("a-1", [WRITTEN, (20_000, "created", "loaded"), (30_000, "loaded", "a-1")]),
        # the new id of a static member is written at once if the group is Stable
        ("a-1 b-1", [WRITTEN, (10_000, "state", "Stable"), BACK, (59_999, "loaded", "a-1 b-1"),
                     (60_000, "loaded", "a-2 b-1")]),
        ("a-1 b-1", [WRITTEN, BACK, (60_000, "loaded", "a-1 b-1")]),
        # one that opens a round is not written before its end
        ("a-1", [WRITTEN, (10_000, "state", "Stable"), BACK, (50_000, "state", "round of a-2"),
                 (1_000_000, "loaded", "a-1")]),
        ("a-1", [(1_000, "state", "round of a-2"), (1_000_000, "loaded", "")]),
        # every write of a consumer group has the members of its time
        ("a", [(0, "write", ""), (5_000, "write", ""), (0, "comes", "b"), (6_000, "write", ""),
               (0, "goes", "a"), (7_000, "write", ""), (9_999, "loaded", ""), (15_000, "loaded", "a"),
               (16_000, "loaded", "a b"), (17_000, "loaded", "b")]),
    ],
)  # fmt: skip
def test_the_next_coordinator_loads_what_was_written(members: str, happenings: list[Happening]) -> None:
    """A round has closed. A write takes 10 ms."""
    now = set(members.split())
    log = WrittenMembers(now, Appends(10))
    log.state_changed(0, CLOSED)
    for time_us, what, who in happenings:
        match what:
            case "sync":
                log.sync_parked(time_us, r.sync_parked(who))
            case "join":
                log.join_parked(time_us, r.join_parked(who))
            case "state":
                log.state_changed(time_us, STATES[who])
            case "created":
                log.created(time_us, GroupCreated("g", who))
            case "is back":
                old, new = who.split()
                log.replaced(r.replaced(old, new))
                now.symmetric_difference_update({old, new})
                log.join_parked(time_us, r.join_parked(new))
            case "write":
                log.consumer_group_written(time_us)
            case "loaded":
                assert log.at(time_us) == set(who.split()), f"after {time_us} us"
            case _:
                now.symmetric_difference_update({who})


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
    log.state_changed(39_999, STATES["Empty"])
    assert log.at(128_999) == set()
    assert log.at(129_000) == {"a-1"} == log.at(1_000_000)
    log.state_changed(40_000, STATES["Empty"])
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


def failing(members: set[str]) -> tuple[UnwrittenChanges, Appends]:
    appends = Appends(10, (Step(0, FAILING_APPENDS, for_ms=1_000),))
    return UnwrittenChanges(members, appends), appends


FAILS: Happening = (1_000_000, "writes fail", "")


@pytest.mark.parametrize(
    ("members", "happenings", "back"),
    [
        # it is undone when the write has failed; a later write was undone with it
        ("a new", [FAILS, (1_000_000, "joined", "new"), (1_004_000, "left", "gone"),
                   (1_009_999, "failed", "a new"), (1_010_000, "failed", "a gone"), (1_012_000, "left", "b"),
                   (1_014_000, "failed", "a gone"), (1_022_000, "failed", "a gone b")], "gone b"),
        # a write fails with an earlier one under way, and not with one that has failed: that of 1,999 ms
        # fails at 2,009 ms, and with it that of 2,000 ms, which ends at 2,010 ms
        ("a early late", [FAILS, (1_999_000, "joined", "early"), (2_000_000, "joined", "late"),
                          (2_009_000, "failed", "a"), (0, "comes", "again"), (2_009_500, "joined", "again"),
                          (2_010_000, "failed", "a again"), (2_019_000, "failed", "a again")], ""),
        # all that one write changes
        ("a new newer", [FAILS, (1_000_000, "joined", "new"), (1_000_000, "joined", "newer"),
                         (1_010_000, "failed", "a")], ""),
        # one without members takes later ones along
        ("a", [FAILS, (1_999_000, "write", ""), (0, "comes", "late"), (2_000_000, "joined", "late"),
               (2_009_000, "failed", "a")], ""),
        # one that began before stays
        ("early", [(999_999, "joined", "early"), FAILS, (1_000_000, "left", "a"),
                   (1_010_000, "failed", "a early")], "a"),
        # of two changes of a member the last is undone first
        ("a", [FAILS, (1_000_000, "left", "a"), (1_001_000, "joined", "a"), (1_020_000, "failed", "a")], "a"),
        ("", [FAILS, (1_000_000, "joined", "new"), (1_001_000, "left", "new"), (1_020_000, "failed", "")],
         ""),
        # a change is undone once: it has joined again, and that was written
        ("a new", [FAILS, (1_000_000, "joined", "new"), (1_010_000, "failed", "a"), (0, "comes", "new"),
                   (1_012_000, "failed", "a new")], ""),
    ],
)  # fmt: skip
def test_what_a_failing_write_changed_is_undone_when_it_has_failed(
    members: str, happenings: list[Happening], back: str
) -> None:
    """``back``: all members that come back."""
    now, returned = set(members.split()), set[str]()
    changes, appends = failing(now)
    for time_us, what, who in happenings:
        match what:
            case "writes fail":
                appends.step_taken(time_us, taken(FAILING_APPENDS))
            case "write":
                changes.written(time_us)
            case "comes":
                now.add(who)
            case "failed":
                returned |= changes.append_failed(time_us)
                assert now == set(who.split()), f"after {time_us} us"
            case _:
                changes.changed(time_us, who, joined=what == "joined")
    assert returned == set(back.split())


def test_writes_are_kept_as_long_as_one_of_them_can_be_undone() -> None:
    changes, appends = failing(set())
    appends.step_taken(1_000_000, taken(FAILING_APPENDS))
    changes.written(1_995_000)
    changes.written(1_999_000)
    changes.append_failed(2_005_000)
    assert changes.written(2_006_000) is not None, "that of 1,999 ms has still to fail"
    changes.append_failed(2_009_000)
    assert changes.written(2_020_000) is None
