"""Commits and the positions at which owners begin, in rows written by hand: ``a-1`` is the id of ``a``."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from groupstorm.storms.checks.invariants import InvariantChecks
from groupstorm.storms.checks.verdicts import COMMITS_KEPT, FENCED, NOTHING_SKIPPED
from groupstorm.trace.events.coordinator import GroupCreated, GroupDeleted, MemberReconciled
from groupstorm.trace.events.member import PartitionsAssigned, PartitionsRevoked
from groupstorm.trace.events.scenario import PartitionsCreated, PartitionsDeleted
from groupstorm.trace.rows import TracedEvent
from groupstorm.trace.schema import Source
from tests.storms.checks import rows as r


class Commit(NamedTuple):
    """A commit of t-0 that the coordinator accepts, among the rows."""

    member_id: str
    generation: int
    position: int


def broken(*happenings: TracedEvent | Commit) -> dict[str, str]:
    """Return what the checks of commits find in these rows and accepted commits, all at 2 s."""
    checks = InvariantChecks(consumer_groups=True, sees_commits=True)
    for one in happenings:
        if isinstance(one, Commit):
            checks.commit_arrives(one.member_id, one.generation, {"t-0": one.position})()
        else:
            checks.add(2_000_000, Source.WORLD, one)
    return {name: said for name, said in checks.violations.items() if name in r.LISTED_IF_VIOLATED}


def reconciled(epoch: int, *partitions: str, revoking: tuple[str, ...] = ()) -> MemberReconciled:
    return MemberReconciled("g", "a", "a-1", epoch, "STABLE", partitions, revoking)


CLOSED = r.state("PreparingRebalance", "CompletingRebalance", 3, "all-joined")
STABLE = r.state("CompletingRebalance", "Stable", 3)
CLASSIC = (r.added("a-1"), CLOSED, STABLE)
LOADED = (GroupDeleted("g", "unloaded"), GroupCreated("g", "loaded"), r.added("a-1"))
LATE = "did not have t-0 in the older one"
#: In its epoch 3 the member has t-0 for the second time: it had given t-0 up in epoch 2.
EPOCHS = (r.added("a-1"), reconciled(1, "t-0"), reconciled(2, "t-1"), reconciled(3, "t-0", "t-1"))


@pytest.mark.parametrize(
    ("rows", "commit", "reason"),
    [
        (CLASSIC, Commit("a-1", 3, 5), None),
        (CLASSIC, Commit("a-1", 2, 5), "the group is in generation 3"),
        (CLASSIC, Commit("a-1", 4, 5), "the group is in generation 3"),
        (CLASSIC, Commit("b-1", 3, 5), "it is not a member"),
        (CLASSIC, Commit("", -1, 5), "the group has members"),
        ((*CLASSIC, r.removed("a-1")), Commit("", -1, 5), None),
        ((*CLASSIC, r.removed("a-1")), Commit("a-1", 3, 5), "it is not a member"),
        ((*CLASSIC, r.replaced("a-1", "a-2")), Commit("a-1", 3, 5), "it is not a member"),
        (CLASSIC[:2], Commit("a-1", 3, 5), "it has not synchronized with this generation yet"),
        # a coordinator that has loaded the group may have an older generation
        ((*CLASSIC, *LOADED), Commit("a-1", 2, 5), None),
        (EPOCHS, Commit("a-1", 3, 5), None),
        (EPOCHS, Commit("a-1", 4, 5), "it is at member epoch 3"),
        (EPOCHS, Commit("a-1", 2, 5), f"it is at member epoch 3 and {LATE}"),
        # how long a member has had its partitions, a coordinator that has loaded the group does not tell
        ((*EPOCHS, *LOADED, reconciled(4, "t-0")), Commit("a-1", 2, 5), None),
        # KIP-1251: an older epoch, of partitions that the member has had since then
        ((*EPOCHS, reconciled(4, "t-0")), Commit("a-1", 3, 5), None),
        ((*EPOCHS, reconciled(4, "t-1", revoking=("t-0",))), Commit("a-1", 3, 5), None),
        ((*EPOCHS, reconciled(4, "t-1")), Commit("a-1", 3, 5), f"it is at member epoch 4 and {LATE}"),
    ],
)  # fmt: skip
def test_fenced_members_commit_nothing(
    rows: tuple[TracedEvent, ...], commit: Commit, reason: str | None
) -> None:
    who = commit[0] or "nobody"
    sentence = f"after 2.000 s a commit of {who} in generation {commit[1]} for t-0 was accepted: {reason}"
    assert broken(*rows, commit) == ({} if reason is None else {FENCED: sentence})


def takes(process: str, position: int) -> PartitionsAssigned:
    return PartitionsAssigned("g", process, f"{process}-1", 1, ("t-0",), (position,), 0)


def gives_up(process: str, position: int, committed: int) -> PartitionsRevoked:
    own = (("t-0",), (position,), (committed,), 0, "close")
    return PartitionsRevoked("g", process, f"{process}-1", 1, *own)


BEGUN = (r.started("a"), r.added("a-1"), r.started("b"), r.added("b-1"), takes("a", 0))
HANDED_OVER = (*BEGUN, gives_up("a", 100, 100))
SHARED = (*BEGUN, takes("b", 0), gives_up("a", 9, 9), gives_up("b", 8, 8))
DELETED = (PartitionsDeleted("g", ("t",), ("t-0",)), PartitionsCreated("g", ("t",), ("t-0",)))


@pytest.mark.parametrize(
    ("happenings", "invariant", "sentence"),
    [
        ((*HANDED_OVER, takes("b", 100)), None, ""),
        ((*HANDED_OVER, takes("b", 105)), NOTHING_SKIPPED,
         "b begins t-0 at 105, 5 records beyond the committed 100"),
        ((*HANDED_OVER, takes("b", 95)), COMMITS_KEPT,
         "b begins t-0 at 95, but the commit of 100 had been accepted"),
        # the last commit counts, wherever it is seen
        ((*BEGUN, Commit("a-1", 1, 90), gives_up("a", 100, 90), takes("b", 90)), None, ""),
        ((*BEGUN, gives_up("a", 100, 90), Commit("a-1", 1, 100), takes("b", 100)), None, ""),
        ((*BEGUN, Commit("a-1", 1, 90), gives_up("a", 100, 80)), COMMITS_KEPT,
         "80 of t-0 is committed when a gives it up, but the commit of 90 had been accepted"),
        ((*BEGUN, gives_up("a", 100, 101)), NOTHING_SKIPPED,
         "101 of t-0 is committed when a gives it up, but no owner had come further than 100"),
        # of two owners each may commit after the other has fetched the offset
        ((*BEGUN, Commit("a-1", 1, 90), takes("b", 120)), None, ""),
        ((*BEGUN, Commit("a-1", 1, 90), takes("b", 80), gives_up("a", 95, 85)), None, ""),
        ((*SHARED, takes("a", 8), Commit("a-1", 1, 9), gives_up("a", 9, 7)), COMMITS_KEPT,
         "7 of t-0 is committed when a gives it up, but the commit of 9 had been accepted"),
        # auto.offset.reset decides
        ((*BEGUN, gives_up("a", 100, -1), takes("b", 500)), None, ""),
        ((*HANDED_OVER, *DELETED, takes("b", 7)), None, ""),
    ],
)  # fmt: skip
def test_owners_begin_at_the_committed_offset(
    happenings: tuple[TracedEvent | Commit, ...], invariant: str | None, sentence: str
) -> None:
    found = {} if invariant is None else {invariant: f"at 2.000 s {sentence}"}
    assert broken(*happenings) == found
