"""A world that a test lets run step by step: what it says of itself at moments that are worked out by hand.

`test_positions_by_hand` derives the times of one member.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.storms.run import chosen_assignors
from groupstorm.storms.step_runner import StepRunner
from groupstorm.storms.world.consumer import VirtualConsumer
from groupstorm.storms.world.consumers import PlainConsumers
from groupstorm.storms.world.environment import Environment
from groupstorm.storms.world.steps import WorldSteps
from groupstorm.storms.world.world import World
from tests.storms.storms_in_memory import START, MemorySink, scenario, storm
from tests.storms.test_positions_by_hand import ALONE, played
from tests.storms.transcript import WORLD

TP = TopicPartition("topic-0", 0)


def begun(*steps: dict[str, Any], **settings: Any) -> World:
    """The world of a scenario with these steps, at time 0."""
    resolved = scenario([*steps], **WORLD | ALONE | settings).resolve(None, 1, {})
    environment = Environment(resolved, MemorySink())
    world = World(environment, PlainConsumers(environment, chosen_assignors(resolved)))
    WorldSteps(StepRunner(world), world)
    return world


def until(world: World, ms: float) -> World:
    world.run_until(int(ms * 1000))
    return world


def consumer(world: World, name: str = "member-0") -> VirtualConsumer:
    found = world.consumers[name]
    assert isinstance(found, VirtualConsumer)
    return found


def test_time_passes_until_the_end_and_no_further() -> None:
    world = begun(START)
    assert until(world, 1_234.567).clock.now_us == 1_234_567
    assert until(world, 5_000).clock.now_us == 5_000_000


def test_a_group_is_settled_once_all_that_live_are_in_it_and_own_what_they_fetch() -> None:
    world = begun({**START, "at_ms": 10})
    assert until(world, 9).settled, "nobody lives, and there is no group"
    assert world.processes == {}
    assert not until(world, 11).settled, "a process looks for the coordinator"
    assert not until(world, 2_000).settled
    assert world.unanswered == ["member-0"], "its JoinGroup waits for the initial delay"
    assert not until(world, 3_019).settled, "its offsets are under way"
    assert world.unanswered == []
    assert until(world, 3_021).settled
    assert [*world.processes] == [*world.consumers] == ["member-0"]


def test_a_group_is_not_settled_while_a_member_is_silent_busy_or_dead() -> None:
    def settled(do: str, at_ms: int, **more: Any) -> bool:
        return until(begun(START, {"at_ms": 60_000, "do": do, "members": [0], **more}), at_ms).settled

    assert settled("busy", 59_999, for_ms=5_000)
    for do in ("busy", "pause", "disconnect"):
        assert not settled(do, 60_001, for_ms=5_000)
        assert settled(do, 65_100, for_ms=5_000)
    assert not settled("crash", 60_001), "the coordinator takes it for a member"
    # its commit of 58008 began its session of 45 s once more, at 58009
    assert not settled("crash", 103_008)
    assert settled("crash", 103_010), "its session has ended, and the group is empty"


def test_a_newcomer_and_a_round_unsettle_the_group() -> None:
    world = begun(START, {"at_ms": 60_000, "do": "add"}, partitions=2)
    assert until(world, 69_999).settled, "it has not begun to poll"
    assert not until(world, 70_001).settled
    assert not until(world, 72_013).settled
    assert until(world, 72_017).settled


def test_lag_is_what_nobody_has_processed() -> None:
    world = begun(START, {"at_ms": 61_005, "do": "crash", "members": [0]})
    assert until(world, 60_005).lag() == 0, "the member took all that had arrived when it looked last"
    assert until(world, 65_500).lag() == 65 - 60
    assert until(world, 70_000).lag() == 70 - 60


def test_a_member_that_cannot_keep_up_lags() -> None:
    """100 records a second arrive, of which it does 50; it began at 301 (3060 ms)."""
    world = begun(START, record_rate=100, process_ms=20)
    done = 301 + (63_060 - 3_060) // 20
    assert until(world, 63_060).lag() == 6_306 - done


def test_the_lag_of_the_group_is_measured_from_its_commits() -> None:
    world = begun(START, partitions=2)
    assert until(world, 8_000).group_lags() == [1, 1], "without a commit it counts as one record"
    assert (world.committed, world.committed_records()) == ({}, 0)
    other = TopicPartition("topic-0", 1)
    assert until(world, 60_005).committed == {TP: 57, other: 57}
    assert world.group_lags() == [3, 3]
    assert world.committed_records() == 114


def test_partitions_come_and_go_with_their_topics() -> None:
    world = begun(START, partitions=2, topics=2)
    until(world, 60_000)
    names = [str(partition) for partition in world.partitions]
    assert names == ["topic-0-0", "topic-0-1", "topic-1-0", "topic-1-1"]
    world.add_partitions("topic-0", 3)
    assert len(world.partitions) == 5
    world.add_partitions("topic-0", 1)
    assert len(world.partitions) == 5, "a topic cannot shrink"
    assert len(world.group_lags()) == 5
    world.delete_topic("topic-1")
    assert [str(partition) for partition in world.partitions] == ["topic-0-0", "topic-0-1", "topic-0-2"]
    assert {partition.topic for partition in world.committed} == {"topic-0"}


def test_only_the_owner_notices_at_once_that_a_topic_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range assignor gives the one partition of each topic to the first member."""
    world = until(begun(START, members=2, partitions=1, topics=2), 60_000)
    names = ("member-0", "member-1")
    assert [TopicPartition("topic-1", 0) in consumer(world, name).work for name in names] == [True, False]
    told: list[tuple[str, str]] = []
    for method in ("metadata_may_have_changed", "fetches_unknown_partitions"):
        monkeypatch.setattr(
            VirtualConsumer, method, lambda self, method=method: told.append((self.name, method))
        )
    world.delete_topic("topic-1")
    assert told == [("member-0", "fetches_unknown_partitions"), ("member-1", "metadata_may_have_changed")]
    told.clear()
    world.add_partitions("topic-0", 3)
    assert told == [(name, "metadata_may_have_changed") for name in names]


def test_a_slow_record_of_a_created_partition_counts_from_its_creation() -> None:
    """Of topic-0-1, 30 s after the creation at 60 s: with 1 record a second, offset 30 instead of 90."""
    entry = {"partition": 1, "at": "90s", "takes": "2s"}
    world = until(begun(START, slow_records=[entry]), 60_000)
    times = world.slow_records
    assert times is not None
    created = TopicPartition("topic-0", 1)
    before = times.next_offset(created, 0)
    world.add_partitions("topic-0", 2)
    assert (before, times.next_offset(created, 0)) == (90, 30)


@pytest.mark.parametrize(("profile", "is_before"), [("java", False), ("librdkafka", True)])
def test_only_java_joins_with_version_9(profile: str, is_before: bool) -> None:
    """Before it no leader can be told to skip its assignment (KIP-814)."""
    environment = until(begun(START, client_profile=profile), 10_000)._environment
    assert environment._joins_before_v9("member-0") is is_before
    assert not environment._joins_before_v9("nobody")


def test_plain_consumers_ask_for_no_rebalance_by_themselves() -> None:
    world = begun(START)
    assert not world.follow_ups
    assert world.give_up_follow_ups() is False


def test_requests_are_counted_by_api_and_error() -> None:
    world = until(begun(START), 10)
    assert world.requests == {("FindCoordinator", None): 1, ("JoinGroup", "MEMBER_ID_REQUIRED"): 1}
    assert until(world, 5_000).requests == {
        ("FindCoordinator", None): 1,
        ("JoinGroup", "MEMBER_ID_REQUIRED"): 1,
        ("JoinGroup", None): 1,
        ("SyncGroup", None): 1,
        ("OffsetFetch", None): 1,
    }


def test_a_coordinator_that_fails_over_is_asked_for_every_retry_backoff() -> None:
    failover = {"at_ms": 60_000, "do": "coordinator-failover", "for_ms": 1_000}
    requests = until(begun(START, failover), 62_000).requests
    assert requests["FindCoordinator", "COORDINATOR_NOT_AVAILABLE"] == 10
    # one at the start, one when the next coordinator is there
    assert requests["FindCoordinator", None] in (1, 2)


@pytest.mark.parametrize(
    ("rate", "process_ms", "share", "poll_us"),
    [
        # nothing to do, and little: a sixteenth of the time is rounded to the nearest
        (0, 1, 0, 1_000),
        (1, 31.2, 0, 31_200),
        (1, 31.25, 1, 31_250),
        # a quarter of the time, and half of it; looks are 50 ms apart
        (250, 1, 4, 12_500),
        (25, 20, 8, 25_000),
        # all of it: max.poll.records = 500 records
        (50, 20, 16, 10_000_000),
        (100, 20, 16, 10_000_000),
    ],
)
def test_how_much_of_its_time_an_application_works(
    rate: int, process_ms: float, share: int, poll_us: int
) -> None:
    world = until(begun(START, record_rate=rate, process_ms=process_ms), 30_000)
    found_share, found_us = consumer(world).work_share()
    assert found_share == share
    assert found_us == pytest.approx(poll_us, rel=0.001)


def test_a_process_says_what_it_is() -> None:
    world = begun(START, {"at_ms": 60_000, "do": "crash", "members": [0]}, partitions=2)
    one = consumer(until(world, 50_000))
    assert repr(one) == "<VirtualConsumer member-0 STABLE owned=2>"
    until(world, 61_000)
    assert repr(one) == "<VirtualConsumer member-0 gone owned=0>"
    assert not one.alive
    assert world.consumers == {}
    for act in (one.crash, one.stop):
        act()  # nothing is left to end
    one.faults.lose_coordinator(1_000)
    one.metadata_may_have_changed()
    until(world, 200_000)


def test_members_start_within_the_time_that_a_step_gives_them() -> None:
    many = scenario([{**START, "over_ms": 10_000}], **WORLD | {"members": 60, "partitions": 60})
    spread = storm(many)
    started = [at_us for at_us, _ in spread.events("member_started")]
    assert len(started) == 60
    assert 0 <= started[0] < 600_000
    assert 9_400_000 < started[-1] < 10_000_000
    assert max(later - earlier for earlier, later in pairwise(started)) < 1_500_000
    again = storm(
        scenario([{**START, "over_ms": 10_000}], **WORLD | {"members": 60, "partitions": 60}), seed=2
    )
    assert [at_us for at_us, _ in again.events("member_started")] != started


def test_added_processes_take_start_ms_and_are_numbered_on() -> None:
    result = storm(scenario([START, {"at_ms": 60_000, "do": "add", "count": 3, "over_ms": 2_000}], **WORLD))
    added = {event.member: at_us for at_us, event in result.events("member_started") if at_us}
    assert sorted(added) == ["member-2", "member-3", "member-4"]
    assert all(70_000_000 <= at_us < 72_000_000 for at_us in added.values())
    assert len(set(added.values())) == 3


def test_the_back_off_of_a_failing_process_is_at_most_five_minutes() -> None:
    settings = {"members": 2, "group.max.size": 1, "restart_failed": True, "start_ms": 0}
    result = storm(scenario([START], **WORLD | settings | {"least_duration_ms": 1_500_000}))
    said = [event.detail for _, event in result.events("step_taken", cause="restart-failed")]
    assert said[:7] == ["in 10 s", "in 20 s", "in 40 s", "in 80 s", "in 160 s", "in 300 s", "in 300 s"]


def test_garbage_collections_end_with_their_process() -> None:
    result = played(
        {"at_ms": 60_000, "do": "crash", "members": [0]},
        gc_pause_ms=300,
        gc_interval_ms=9_700,
        tail_ms=60_000,
    )
    paused = [at_us // 1000 for at_us, _ in result.events("member_paused")]
    assert paused == [9_700, 19_700, 29_700, 39_700, 49_700, 59_700]
    assert [at_us // 1000 for at_us, _ in result.events("member_resumed")] == [
        10_000, 20_000, 30_000, 40_000, 50_000,
    ]  # fmt: skip


def test_pauses_of_a_collector_are_drawn() -> None:
    pause, interval = {"uniform": [100, 500]}, {"uniform": [2_000, 6_000]}
    crash = {"at_ms": 400_000, "do": "crash", "members": [0]}
    result = played(crash, gc_pause_ms=pause, gc_interval_ms=interval)
    rows = result.events("member_paused")
    lasted = [event.duration_us for _, event in rows]
    between = [
        later - earlier - duration
        for (earlier, later), duration in zip(pairwise(at_us for at_us, _ in rows), lasted, strict=False)
    ]
    assert 70 < len(rows) < 130
    assert all(100_000 <= us < 500_000 for us in lasted)
    assert all(2_000_000 <= us < 6_000_000 for us in between)
    assert len(set(lasted)) == len(lasted)
    assert len(set(between)) == len(between)
    assert sum(lasted) / len(lasted) == pytest.approx(300_000, rel=0.2)
    assert sum(between) / len(between) == pytest.approx(4_000_000, rel=0.2)
