"""Why partitions were un-owned: rows that fall on one instant, and rounds within one gap."""

from __future__ import annotations

import pytest

from groupstorm.figures.reasons import reasons_sentences
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import Reasons
from groupstorm.trace.events import member as member_events
from tests.figures.gap_rows import (
    G,
    Row,
    assigned,
    divided,
    ended,
    in_seconds,
    joined,
    removed,
    revoked,
    state,
)


def crashed(member: str, *partitions: str) -> member_events.MemberCrashed:
    return member_events.MemberCrashed(G, member, member, 1, partitions, (), ())


def test_a_partition_that_changes_hands_within_an_instant_was_not_unowned() -> None:
    found = divided((10, revoked("a", "assignment", "p0")), (10, assigned("b", "p0")), end_s=20)
    assert found == Reasons({}, None, None)


def test_a_round_that_was_over_when_the_gap_began_has_no_part_in_it() -> None:
    found = divided(
        (10, state("PreparingRebalance", "new-member")),
        *ended(12),
        (12, crashed("a", "p0")),
        end_s=20,
    )
    assert in_seconds(found) == {Reason.SESSION: 8}


@pytest.mark.parametrize(
    ("new_owner", "expected"),
    [
        ("a", {Reason.RESTART: 2 + 17, Reason.REJOIN: 1 + 1}),
        ("b", {Reason.RESTART: 2, Reason.SESSION: 17, Reason.REJOIN: 1 + 1}),
    ],
)
def test_between_two_rounds_the_group_waits_for_the_owner_if_it_comes_back(
    new_owner: str, expected: dict[Reason, float]
) -> None:
    found = divided(
        (10, crashed("a", "p0")),
        (12, state("PreparingRebalance", "new-member")),
        *ended(13),
        (30, state("PreparingRebalance", "new-member")),
        *ended(31),
        (31, assigned(new_owner, "p0")),
    )
    assert in_seconds(found) == expected


@pytest.mark.parametrize("new_owner", ["a", "b"])
def test_a_round_that_another_process_begins_waits_for_a_dead_member_s_session(new_owner: str) -> None:
    """Its successor is not waited for, whatever its name: it has another member id."""
    found = divided(
        (10, crashed("a", "p0")),
        (45, state("PreparingRebalance", "new-member")),
        (54, removed("a", "session-expired")),
        (54, state("CompletingRebalance", "all-joined")),
        (54, state("Stable", "assigned")),
        (54, assigned(new_owner, "p0")),
    )
    assert in_seconds(found) == {Reason.SESSION: 44}


def test_of_two_join_phases_that_took_as_long_the_first_is_named() -> None:
    rows: list[Row] = []
    for begin_s, who in ((10, "x"), (100, "y")):
        rows += [
            (begin_s, state("PreparingRebalance", "new-member")),
            (begin_s + 50, joined(who)),
            *ended(begin_s + 50),
        ]
    assert divided(*rows, end_s=200).slowest == ("x", 50_000_000)


def test_at_most_two_reasons_are_named() -> None:
    runs = {"v": [Reasons({Reason.SESSION: 40, Reason.REJOIN: 30, Reason.ASSIGN: 30})]}
    [sentence] = reasons_sentences(runs)
    assert sentence.startswith("Where un-owned time went: under v 40 % to ")
    assert sentence.count("30 %") == 1
