"""Why partitions were un-owned, of small groups whose gaps are divided by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from groupstorm.figures.reasons import gap_sentence, reasons_sentences
from groupstorm.history.phases import Reason
from groupstorm.history.reasons import Reasons
from groupstorm.storms.runs.run import run
from groupstorm.storms.scenario.files import load
from groupstorm.trace.events import coordinator as events
from groupstorm.trace.events import member as member_events
from groupstorm.trace.events import scenario as world_events
from tests.figures.gap_rows import (
    G,
    Row,
    assigned,
    divided,
    ended,
    in_seconds,
    joined,
    of_rows,
    removed,
    revoked,
    state,
)
from tests.soaking import one_in


def test_before_all_partitions_had_owners_nothing_counts() -> None:
    assert divided() == Reasons({}, None, None)


def test_a_group_that_begins_waits_for_its_first_member_and_the_initial_delay() -> None:
    """a starts at 1 s and joins at 3 s; b's callback ends 0.25 s after its SyncGroup was answered."""
    found = of_rows(
        (0.0, world_events.ScenarioStarted(G, "{}", ("p0", "p1"), 0, 1)),
        (1.0, member_events.MemberStarted(G, "a", None, ("p",))),
        (2.0, member_events.MemberStarted(G, "b", None, ("p",))),
        (3.0, state("PreparingRebalance", "new-member")),
        *ended(6.0, 6.5, cause="initial-delay"),
        (6.5, assigned("a", "p0")),
        (6.75, assigned("b", "p1")),
        (9.0, world_events.ScenarioEnded(G)),
    )
    assert in_seconds(found) == {
        Reason.START: 2 * 2,
        Reason.INITIAL_DELAY: 2 * 3,
        Reason.ASSIGN: 2 * 0.5,
        Reason.NEXT_POLL: 0.25,
    }
    assert found.longest is not None
    assert gap_sentence(found.longest) == (
        "p1, 5.8 s from 1.0 s on: nobody had it, as the group began; "
        "the time went to group.initial.rebalance.delay.ms; b took it"
    )


def test_rounds_before_the_figures_begin_are_the_past_of_a_gap_that_lasts() -> None:
    """Both members had joined by 3 s, and the round gave p1 to nobody. The figures count from 10 s on."""
    found = of_rows(
        (0, world_events.ScenarioStarted(G, '{"figures_from": 10000}', ("p0", "p1"), 0, 1)),
        (0, member_events.MemberStarted(G, "a", None, ("p",))),
        (1, state("PreparingRebalance", "new-member")),
        (3, state("CompletingRebalance", "initial-delay")),
        (3, events.SyncAnswered(G, "a", "a", 1, None, ("p0",))),
        (3, events.SyncAnswered(G, "b", "b", 1, None, ())),
        (3, state("Stable", "assigned")),
        (3, assigned("a", "p0")),
        (20, world_events.ScenarioEnded(G)),
    )
    assert (in_seconds(found), found.start_us) == ({Reason.LEFT_OUT: 10}, 0)


@pytest.mark.parametrize(("answered", "reason"), [("ab", Reason.LEFT_OUT), ("a", Reason.NEXT_POLL)])
def test_a_partition_that_no_member_got_in_a_round_was_left_out(answered: str, reason: Reason) -> None:
    """Perhaps b got p1, and has not sent its SyncGroup."""
    of_members = {"a": ("p0",), "b": ()}
    synced = [events.SyncAnswered(G, name, name, 1, None, of_members[name]) for name in answered]
    found = of_rows(
        (0, world_events.ScenarioStarted(G, "{}", ("p0", "p1"), 0, 1)),
        (0, member_events.MemberStarted(G, "a", None, ("p",))),
        (0, state("PreparingRebalance", "new-member")),
        (3, state("CompletingRebalance", "initial-delay")),
        *[(4, one) for one in synced],
        (4, state("Stable", "assigned")),
        (4, assigned("a", "p0")),
        (60, world_events.ScenarioEnded(G)),
    )
    assert in_seconds(found) == {Reason.INITIAL_DELAY: 2 * 3, Reason.ASSIGN: 2 * 1, reason: 56}
    assert found.start_us == (8 if reason is Reason.LEFT_OUT else 8 + 56) * 1_000_000


def test_a_crashed_member_stays_in_the_group_until_its_session_expires() -> None:
    found = divided(
        (10, member_events.MemberCrashed(G, "a", "a", 1, ("p0",), (), ())),
        (52, removed("a", "session-expired")),
        (52, state("PreparingRebalance", "session-expired")),
        (55, joined("b")),
        *ended(55, 55.5),
        (56, assigned("b", "p0")),
    )
    assert in_seconds(found) == {
        Reason.SESSION: 42,
        Reason.REJOIN: 3,
        Reason.ASSIGN: 0.5,
        Reason.NEXT_POLL: 0.5,
    }
    assert found.longest is not None
    assert gap_sentence(found.longest) == (
        "p0, 46.0 s from 10.0 s on: a crashed; the time went to silent members whose session has to expire "
        "(session.timeout.ms); b took it"
    )


def test_a_join_phase_may_wait_for_a_dead_member_too() -> None:
    found = divided(
        (10, revoked("b", "rebalance", "p1")),
        (10, state("PreparingRebalance", "new-member")),
        (40, removed("a", "session-expired")),
        *ended(40),
        (40, assigned("b", "p1")),
    )
    assert in_seconds(found) == {Reason.SESSION: 30}


@pytest.mark.parametrize(
    ("last", "who"),
    [([(70.0, joined("a"))], "a"), ([(60.0, joined("b")), (70.0, removed("a", "rebalance-timeout"))], "a")],
)
def test_a_slow_member_holds_the_join_phase_up(last: Sequence[Row], who: str) -> None:
    found = divided(
        (10, state("PreparingRebalance", "new-member")),
        (13, revoked("b", "rebalance", "p1")),
        (13, joined("b")),
        *last,
        *ended(70),
        (70, assigned("b", "p1")),
    )
    assert in_seconds(found) == {Reason.SLOW: 57}
    assert found.slowest == (who, 60_000_000)
    assert "a join phase that waits for a; b got it back" in reasons_sentences({"x": [found]})[1]


def test_a_static_member_that_comes_back_needs_no_round() -> None:
    found = divided((10, revoked("a", "close", "p0")), (35, assigned("a", "p0")))
    assert in_seconds(found) == {Reason.RESTART: 25}


@pytest.mark.parametrize("cause", ["member-updated", "pending-member"])
def test_a_round_that_another_member_begins_ends_no_session(cause: str) -> None:
    """Kafka Streams probes, or an instance starts; one that closed without LeaveGroup is a member yet."""
    found = divided(
        (10, revoked("a", "close", "p0")),
        (48, state("PreparingRebalance", cause)),
        (55, removed("a", "session-expired")),
        (55, state("CompletingRebalance", "all-joined")),
        (55, state("Stable", "assigned")),
        (55, assigned("b", "p0")),
    )
    assert in_seconds(found) == {Reason.SESSION: 45}


def test_what_a_cooperative_member_gives_up_waits_for_the_second_round() -> None:
    found = divided(
        (10, revoked("a", "assignment", "p0")),
        (10.5, state("PreparingRebalance", "member-updated")),
        *ended(13),
        (13.25, assigned("c", "p0")),
    )
    assert in_seconds(found) == {Reason.SECOND_ROUND: 3, Reason.NEXT_POLL: 0.25}


def test_a_new_partition_waits_for_members_to_see_it() -> None:
    found = divided(
        (10, world_events.PartitionsCreated(G, ("t",), ("p2",))),
        (40, state("PreparingRebalance", "leader-rejoined")),
        *ended(43),
        (44, assigned("b", "p2")),
    )
    assert in_seconds(found) == {Reason.METADATA: 30, Reason.REJOIN: 3, Reason.NEXT_POLL: 1}


def test_a_group_without_members_waits_for_a_process_and_then_for_more() -> None:
    found = divided(
        (10, revoked("a", "close", "p0")),
        (10, state("PreparingRebalance", "left")),
        (10, state("Empty", "no-members")),
        (30, state("PreparingRebalance", "new-member")),
        *ended(33, cause="initial-delay"),
        (33, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.EMPTY: 20, Reason.INITIAL_DELAY: 3}


def test_a_consumer_group_without_members_waits_for_a_process_before_its_next_heartbeat() -> None:
    """`recreate` under KIP-848: all leave at 10 s, the first new one comes at 30 s and gets p0 at 33 s."""

    def has(member: str, *partitions: str) -> events.MemberReconciled:
        return events.MemberReconciled(G, member, f"{member}-id", 2, "STABLE", partitions, ())

    found = divided(
        (2, has("a", "p0")),
        (10, revoked("a", "close", "p0")),
        (10, events.MemberRemoved(G, "a", "a-id", None, 2, "left")),
        (10, state("Empty", "left")),
        (30, state("Stable", "heartbeat")),
        (33, has("a-v2", "p0")),
        (34, assigned("a-v2", "p0")),
    )
    assert in_seconds(found) == {Reason.EMPTY: 20, Reason.NEXT_HEARTBEAT: 3, Reason.NEXT_POLL: 1}


def test_a_member_that_is_given_back_what_the_broker_took_was_not_away() -> None:
    """Another member was to have p0, and had not asked for it when the targets changed again."""

    def has(*partitions: str, revoking: tuple[str, ...] = ()) -> events.MemberReconciled:
        return events.MemberReconciled(G, "a", "a", 2, "STABLE", partitions, revoking)

    found = divided(
        (9, has(revoking=("p0",))),
        (10, revoked("a", "assignment", "p0")),
        (10, has()),
        (15, has("p0")),
        (16, assigned("a", "p0")),
    )
    assert in_seconds(found) == {Reason.NEXT_HEARTBEAT: 5, Reason.NEXT_POLL: 1}


@pytest.mark.parametrize("variant", one_in(3, load("client-profiles").variants))
def test_the_parts_of_a_storm_add_up_to_its_unowned_time(variant: str, tmp_path: Path) -> None:
    """A lost node, a slow batch, a deploy: `unowned_partition_seconds` comes from other code."""
    settings = {"members": 8, "partitions": 16}
    scenario = load("client-profiles").resolve(variant, 1, settings)
    finished = run(scenario, tmp_path / variant)
    figures, gap = finished.figures, finished.reasons.longest
    assert figures.unowned_partition_seconds
    assert sum(finished.reasons.us.values()) == round(figures.unowned_partition_seconds * 1_000_000)
    assert gap is not None
    assert gap.to_us - gap.from_us == round((figures.unowned_max_seconds or 0) * 1_000_000)


def test_partitions_without_an_owner_before_all_had_one_leave_no_gap() -> None:
    rows: list[Row] = [
        (0, world_events.ScenarioStarted(G, "{}", ("p0", "p1"), 0, 1)),
        (1, assigned("a", "p0")),
        (2, revoked("a", "close", "p0")),
        (3, world_events.PartitionsCreated(G, ("t",), ("p2",))),
        (4, assigned("a", "p0", "p1")),
        (5, world_events.PartitionsDeleted(G, ("t",), ("p2",))),
        (6, assigned("b", "p1")),
        (7, revoked("a", "close", "p0")),
        (9, assigned("b", "p0")),
    ]
    assert in_seconds(of_rows(*rows)) == {Reason.RESTART: 2}, "p2 needs no owner from 5 s on"


@pytest.mark.parametrize(
    ("lasted_s", "reason"), [(9.999999, Reason.REJOIN), (10, Reason.REJOIN), (10.00001, Reason.SLOW)]
)
def test_a_join_phase_of_more_than_ten_seconds_waits_for_somebody(lasted_s: float, reason: Reason) -> None:
    found = divided(
        (20, revoked("b", "rebalance", "p1")),
        (20, state("PreparingRebalance", "new-member")),
        (20, joined("b")),
        (20 + lasted_s, joined("a")),
        *ended(20 + lasted_s),
        (20 + lasted_s, assigned("b", "p1")),
    )
    assert [*found.us] == [reason]


@pytest.mark.parametrize(("still_s", "reason"), [(4.5, Reason.SLOW), (3.5, Reason.REJOIN)])
def test_a_short_join_phase_waits_for_who_stands_still_most_of_it(still_s: float, reason: Reason) -> None:
    """A phase of 6 s, whose last member is paused as it begins; the other one joins after a second. So the
    pause holds it for 3.5 s, or for 2.5 s."""
    found = divided(
        (20, member_events.MemberPaused(G, "a", "a", (), (), int(still_s * 1_000_000), "pause")),
        (20, revoked("b", "rebalance", "p1")),
        (20, state("PreparingRebalance", "new-member")),
        (21, joined("b")),
        (26, joined("a")),
        *ended(26),
        (26, assigned("b", "p1")),
    )
    assert [*found.us] == [reason]


@pytest.mark.parametrize(("last_s", "reason"), [(29.2, Reason.SLOW), (29.8, Reason.REJOIN)])
def test_a_short_join_phase_waits_for_two_that_stand_still_one_after_the_other(
    last_s: float, reason: Reason
) -> None:
    """A phase of 9 s and more: a is paused for 5 s of it, then c; neither holds it for half of the time. If b
    joins after both, as its heartbeat comes so late, nobody is known to have held it."""
    found = divided(
        (20, member_events.MemberPaused(G, "a", "a", (), (), 5_000_000, "pause")),
        (20, revoked("b", "rebalance", "p1")),
        (20, state("PreparingRebalance", "new-member")),
        *([(20.5, joined("b"))] if reason is Reason.SLOW else []),
        (24, member_events.MemberPaused(G, "c", "c", (), (), 5_000_000, "pause")),
        (25, joined("a")),
        (29.2, joined("c")),
        *([(last_s, joined("b"))] if reason is Reason.REJOIN else []),
        *ended(last_s),
        (last_s, assigned("b", "p1")),
    )
    assert [*found.us] == [reason]


def test_each_round_has_waited_for_its_own_members() -> None:
    slow = divided(
        (10, state("PreparingRebalance", "new-member")),
        (10, revoked("b", "rebalance", "p1")),
        (40, joined("a")),
        *ended(40),
        (40, assigned("b", "p1")),
        (50, state("PreparingRebalance", "new-member")),
        (50, revoked("b", "rebalance", "p1")),
        (75, removed("c", "rebalance-timeout")),
        *ended(75),
        (75, assigned("b", "p1")),
        (80, removed("d", "left")),
        (80, state("PreparingRebalance", "left")),
        (80, state("PreparingRebalance", "left")),
        *ended(91, cause="rebalance-timeout"),
    )
    assert in_seconds(slow) == {Reason.SLOW: 55}
    assert slow.slowest == ("a", 30_000_000)
    assert slow.longest is not None
    assert slow.longest.who == "a"


def test_the_reason_of_a_gap_is_that_of_most_of_its_time() -> None:
    found = divided(
        (10, revoked("b", "rebalance", "p1")),
        (12, state("PreparingRebalance", "new-member")),
        *ended(15, 25),
        (29, assigned("a", "p1")),
    )
    assert in_seconds(found) == {Reason.REJOIN: 5, Reason.ASSIGN: 10, Reason.NEXT_POLL: 4}
    assert found.longest is not None
    assert (found.longest.reason, found.longest.new_owner) == (Reason.ASSIGN, "a")


def test_a_leader_that_is_dead_before_it_has_assigned_is_waited_for_until_its_session_ends() -> None:
    leads = events.GroupStateChanged(G, "", "CompletingRebalance", 1, "all-joined", None, None, "a", 2)
    found = divided(
        (10, revoked("b", "rebalance", "p1")),
        (12, state("PreparingRebalance", "new-member")),
        (15, leads),
        (35, removed("a", "session-expired")),
        (35, state("PreparingRebalance", "session-expired")),
        *ended(36),
        (36, assigned("b", "p1")),
    )
    assert in_seconds(found) == {Reason.REJOIN: 6, Reason.SESSION: 20}


def test_a_dead_leader_is_waited_for_though_another_one_joins_before_its_session_ends() -> None:
    leads = events.GroupStateChanged(G, "", "CompletingRebalance", 1, "all-joined", None, None, "a", 2)
    found = divided(
        (10, revoked("b", "rebalance", "p1")),
        (12, state("PreparingRebalance", "new-member")),
        (13, member_events.MemberCrashed(G, "a", "a", 1, (), (), ())),
        (15, leads),
        (45, state("PreparingRebalance", "member-updated")),
        (60, removed("a", "session-expired")),
        *ended(60),
        (60, assigned("b", "p1")),
    )
    assert in_seconds(found) == {Reason.REJOIN: 5, Reason.SESSION: 45}


def test_a_group_that_changes_before_the_gap_is_not_part_of_it() -> None:
    found = divided(
        (10, state("PreparingRebalance", "new-member")),
        *ended(12, 13),
        (20, member_events.PartitionsLost(G, "a", "a", 1, ("p0",), (), (), 0, "poll-timeout")),
        (20, state("PreparingRebalance", "left")),
        *ended(23),
        (26, assigned("b", "p0")),
    )
    assert in_seconds(found) == {Reason.REJOIN: 3, Reason.NEXT_POLL: 3}
    assert found.longest is not None
    assert "a was out of the group (poll-timeout)" in gap_sentence(found.longest)


def test_a_member_that_closes_during_a_round_has_closed() -> None:
    lost = member_events.PartitionsLost(G, "a", "a", 1, ("p0",), (0,), (0,), 0, "close")
    found = divided((10, lost), (35, assigned("b", "p0")))
    assert found.longest is not None
    assert "25.0 s from 10.0 s on: a closed; " in gap_sentence(found.longest)


def test_a_group_whose_members_have_gone_before_they_had_a_partition_does_not_start() -> None:
    """Its consumers fail with the first assignment (auto.offset.reset=none)."""
    found = of_rows(
        (0, world_events.ScenarioStarted(G, "{}", ("p0",), 0, 1)),
        (0, member_events.MemberStarted(G, "a", None, ("t",))),
        (2, state("PreparingRebalance", "new-member")),
        *ended(3, 4, cause="initial-delay"),
        (4, state("PreparingRebalance", "left")),
        (4, state("Empty", "no-members")),
        (10, world_events.ScenarioEnded(G)),
    )
    assert in_seconds(found)[Reason.EMPTY] == 6
