"""The effect of each step on a group, to the millisecond if it can be computed by hand."""

from __future__ import annotations

import pytest

from tests.storms.storms_in_memory import FIXED, START, Storm, scenario, storm

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
EAGER = {"partition.assignment.strategy": "range"}


def held(result: Storm) -> bool:
    return set((result.figures.invariants or {}).values()) == {"held"}


def test_first_members_wait_for_the_initial_delay_and_its_extension() -> None:
    result = storm(scenario([START], members=3, partitions=6, **FIXED))
    [(stable_us, _)] = result.events("group_state_changed", state="Stable")
    # first poll 0, coordinator found 2, JoinGroup at 3 ms, MEMBER_ID_REQUIRED and back at 5 ms;
    # two delays of 3 s (the second because others came within the first), answer 1 ms, SyncGroup 1 ms
    assert stable_us == (5 + 6_000 + 2) * 1000
    assert held(result)


def test_a_crashed_member_is_removed_when_its_session_has_expired() -> None:
    result = storm(scenario([START, {"at_ms": 60_000, "do": "crash", "members": [1]}], members=3, **FIXED))
    [(crashed_us, _)] = result.events("member_crashed", member="member-1")
    [(removed_us, removed)] = result.events("member_removed", member="member-1")
    assert removed.cause == "session-expired"
    assert 42_000_000 <= removed_us - crashed_us <= 45_001_000
    assert held(result)


def test_a_stopped_dynamic_member_leaves_and_a_static_member_does_not() -> None:
    steps = [START, {"at_ms": 60_000, "do": "stop", "members": [1]}]
    [(_, removed)] = storm(scenario(steps, members=3, **FIXED)).events("member_removed")
    assert removed.cause == "left"
    static = scenario(steps, members=3, **FIXED, **{"group.instance.id": "ordinal"})
    [(_, removed)] = storm(static).events("member_removed")
    assert removed.cause == "session-expired"


def test_a_static_member_that_comes_back_in_time_causes_no_rebalance() -> None:
    steps = [START, {"at_ms": 60_000, "do": "restart", "members": [1]}]
    result = storm(scenario(steps, members=3, start_ms=20_000, **FIXED, **{"group.instance.id": "ordinal"}))
    assert result.figures.generations == 1
    assert len(result.events("member_replaced")) == 1
    assert result.figures.moves == 0
    assert result.figures.unowned_max_seconds == pytest.approx(20, abs=1)


def test_eager_members_give_up_everything_and_cooperative_members_only_partitions_that_move() -> None:
    steps = [START, {"at_ms": 60_000, "do": "add"}]
    eager = storm(scenario(steps, members=3, partitions=12, **FIXED, **EAGER))
    cooperative = storm(scenario(steps, members=3, partitions=12, **FIXED, **COOPERATIVE))
    assert eager.figures.generations == 2
    assert cooperative.figures.generations == 3, "the second round hands over what the first one took away"
    revoked = [len(event.partitions) for _, event in eager.events("partitions_revoked")]
    assert sum(revoked) == 12
    moved = [len(event.partitions) for _, event in cooperative.events("partitions_revoked")]
    assert sum(moved) == 3
    assert cooperative.figures.moves == 3
    # range hands 0-3, 4-7, 8-11 out as 0-2, 3-5, 6-8, 9-11: three, two and one stay where they were
    assert (eager.figures.revoked_and_returned, cooperative.figures.revoked_and_returned) == (6, 0)
    assert held(eager)
    assert held(cooperative)


def test_a_disconnected_member_goes_on_processing_its_partitions() -> None:
    steps = [START, {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 100_000}]
    result = storm(scenario(steps, members=3, partitions=6, **FIXED))
    assert result.figures.dual_owner_seconds is not None
    assert result.figures.dual_owner_seconds > 2 * 40
    assert result.figures.records_duplicated is not None
    assert result.figures.records_duplicated > 0
    [(lost_us, lost)] = result.events("partitions_lost", member="member-1")
    assert lost.cause == "UNKNOWN_MEMBER_ID"
    assert lost_us >= 160_000_000
    assert held(result)


def test_a_short_disconnection_goes_unnoticed() -> None:
    steps = [START, {"at_ms": 60_000, "do": "disconnect", "members": [1], "for_ms": 30_000}]
    result = storm(scenario(steps, members=3, **FIXED))
    assert result.figures.generations == 1
    assert result.figures.dual_owner_seconds == 0


def test_a_paused_member_keeps_its_partitions_without_processing_them() -> None:
    steps = [START, {"at_ms": 60_000, "do": "pause", "members": [1], "for_ms": 20_000}]
    result = storm(scenario(steps, members=3, partitions=6, **FIXED))
    assert result.figures.generations == 1
    assert result.figures.paused_partition_seconds == 2 * 20
    # and what had arrived since its last poll(), up to 50 ms before
    assert result.figures.lag_peak == pytest.approx(2 * 20 * 100, abs=2 * 5)


def test_a_slow_batch_holds_up_the_rebalance_until_it_is_done() -> None:
    steps = [
        START,
        {"at_ms": 60_000, "do": "busy", "members": [1], "for_ms": 120_000},
        {"at_ms": 61_000, "do": "add"},
    ]
    result = storm(scenario(steps, members=3, start_ms=0, **FIXED, **EAGER))
    assert result.figures.rebalance_latency_max_ms == pytest.approx(119_000, abs=3_000)
    assert held(result)


def test_a_slow_batch_beyond_max_poll_interval_costs_the_membership() -> None:
    steps = [START, {"at_ms": 60_000, "do": "busy", "members": [1], "for_ms": 120_000}]
    result = storm(scenario(steps, members=3, **FIXED, **{"max.poll.interval.ms": 30_000}))
    [(removed_us, removed)] = result.events("member_removed")
    assert removed.cause == "left"
    assert removed_us == 90_001_000
    [(lost_us, lost)] = result.events("partitions_lost")
    assert (lost_us, lost.cause) == (180_000_000, "poll-timeout")


def test_an_idle_application_polls_for_its_slow_batch_as_that_begins() -> None:
    """It polls every 20 s; max.poll.interval.ms counts from the slow batch, not from the poll before it."""
    steps = [START, {"at_ms": 75_000, "do": "busy", "members": [0], "for_ms": 120_000}]
    settings = {**FIXED, "poll_interval_ms": 20_000, "max.poll.interval.ms": 30_000}
    result = storm(scenario(steps, members=1, record_rate=0, **settings))
    [(left_us, _)] = result.events("rejoin_requested", cause="poll-timeout")
    assert left_us == 75_000_000 + 30_000_000


def test_new_partitions_are_owned_after_the_leaders_next_metadata_refresh() -> None:
    steps = [START, {"at_ms": 60_000, "do": "add-partitions", "topic": "topic-0", "partitions": 8}]
    result = storm(
        scenario(steps, members=3, partitions=6, **FIXED, **COOPERATIVE, **{"metadata.max.age.ms": 100_000})
    )
    [(_, asked)] = result.events("rejoin_requested", cause="metadata-changed")
    [(prepared_us, _)] = result.events("group_state_changed", cause="leader-rejoined")
    assert 100_000_000 <= prepared_us <= 100_010_000
    assert asked.generation == 1
    assert held(result)


def test_a_rolling_restart_keeps_its_limits() -> None:
    for surge, unavailable in ((0, 1), (0, 3), (2, 0)):
        result = storm(
            scenario(
                [START, {"at_ms": 60_000, "do": "rolling-restart"}],
                members=6, partitions=12, start_ms={"uniform": [1_000, 9_000]}, ready_ms=2_000,
                max_surge=surge, max_unavailable=unavailable, **COOPERATIVE,
            )
        )  # fmt: skip
        running = 0
        counts = []
        for time_us, _, event in result.rows:
            kind = type(event).__name__
            running += {"MemberStarted": 1, "MemberClosed": -1}.get(kind, 0)
            if time_us > 60_000_000:
                counts.append(running)
        assert min(counts) >= 6 - max(unavailable, 0)
        assert max(counts) <= 6 + surge
        assert len(result.events("member_closed")) == 6
        assert held(result)


def test_a_long_assignment_is_unowned_time() -> None:
    steps = [START, {"at_ms": 60_000, "do": "add"}]
    result = storm(scenario(steps, members=3, assign_ms=10_000, **FIXED, **EAGER))
    assert result.figures.unowned_max_seconds is not None
    # and up to one heartbeat interval, in which the members learn of the rebalance one after the other
    assert 10 < result.figures.unowned_max_seconds < 13.1


def test_an_assignment_that_outlasts_the_session_costs_the_leader_its_membership() -> None:
    result = storm(scenario([START], members=3, assign_ms=50_000, settle_timeout_ms=60_000, **FIXED))
    causes = {event.cause for _, event in result.events("member_removed")}
    assert "session-expired" in causes, "the client's lock is held while the assignor runs: no heartbeats"
    assert not held(result)


def test_callbacks_take_their_time() -> None:
    steps = [START, {"at_ms": 60_000, "do": "add"}]
    result = storm(
        scenario(
            steps, members=3, partitions=6, revoke_callback_ms=700, assign_callback_ms=300, **FIXED, **EAGER
        )
    )
    for _, event in result.events("partitions_revoked"):
        assert event.duration_us == 700_000
    assert {event.duration_us for _, event in result.events("partitions_assigned") if event.partitions} == {
        300_000
    }


def test_a_group_that_nobody_can_join_does_not_settle() -> None:
    result = storm(scenario([START], members=3, settle_timeout_ms=5_000, **FIXED, **{"group.max.size": 2}))
    assert [event.error for _, event in result.events("member_failed")] == ["GROUP_MAX_SIZE_REACHED"]
    assert held(result), "the two that are in do settle"


def test_a_callback_beyond_max_poll_interval_costs_the_membership() -> None:
    settings = {**FIXED, "max.poll.interval.ms": 20_000, "settle_timeout_ms": 60_000}
    result = storm(scenario([START], members=1, assign_callback_ms=30_000, **settings))
    [(called_us, _), *_] = result.events("sync_answered")
    [(removed_us, removed), *_] = result.events("member_removed")
    assert removed.cause == "left"
    assert removed_us == called_us + 1_000 + 20_000_000 + 1_000, "answer, max.poll.interval.ms, LeaveGroup"
    assert {event.cause for _, event in result.events("partitions_lost")} == {"poll-timeout"}


def test_a_consumer_that_loses_its_connection_while_it_looks_up_its_offsets_asks_again() -> None:
    # member-1 has its assignment at 6,007 ms and is cut off before the answer to OffsetFetch is back
    steps = [START, {"at_ms": 6_008, "do": "disconnect", "members": [0, 1, 2], "for_ms": 10_000}]
    result = storm(scenario(steps, members=3, partitions=6, **FIXED))
    taken = [time_us for time_us, event in result.events("partitions_assigned") if event.partitions]
    assert len(taken) == 3
    assert min(taken) >= 16_008_000
    assert held(result)
