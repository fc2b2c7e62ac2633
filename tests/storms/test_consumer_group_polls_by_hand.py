"""What a poll() of a member of a consumer group is and what it does, worked out by hand.

The times are those of `test_consumer_group_processes_by_hand`.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.coordinator.errors import Error
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from tests.storms.test_consumer_group_by_hand import ADD, check
from tests.storms.test_consumer_group_processes_by_hand import Group, answer

AUTO_COMMIT: dict[str, Any] = {"enable.auto.commit": True}


@pytest.mark.parametrize(("exact", "polls_ms"), [(False, []), (True, [0, 1_000, 2_000, 2_002, 3_002])])
def test_polls_are_events_in_exact_mode_alone(
    exact: bool, polls_ms: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One every second. The application polls out of turn when it knows its positions, at 1002, and every
    second from then on: the poll() that was expected at 2000 is put off to 2002."""
    polled: list[int] = []
    monkeypatch.setattr(
        ConsumerGroupProcess, "polled", lambda process: polled.append(process.clock.now_us // 1_000)
    )
    group = Group(exact, poll_interval_ms=1_000)
    group.started()
    group.until(3_500)
    assert polled == polls_ms


@pytest.mark.parametrize("exact", [False, True])
def test_a_callback_is_no_poll(exact: bool) -> None:
    """onPartitionsAssigned takes from 4 ms to 30004. The last poll() was at 4 ms, so the heartbeat of 20004
    leaves the group."""
    group = Group(exact, assign_callback_ms=30_000, **{"max.poll.interval.ms": 20_000})
    group.started()
    group.until(29_000)
    assert group.rows(4) == ["20005 member_removed member-0 left", "20005 group_state_changed Empty 3"]


def test_the_callbacks_of_a_poll_follow_each_other_without_another_poll() -> None:
    """member-0 polls at 72002, when onPartitionsRevoked begins, and would poll again at 73002."""
    check(
        """
        72002 partitions_paused member-0 0-1 0
        72002 partitions_revoked member-0 2 0-1 0 -1 assignment
        72102 partitions_assigned member-0 2 - -
        72103 member_reconciled member-0 3 STABLE 0-0
        """,
        ADD,
        from_ms=71_500,
        until_ms=75_000,
        poll_interval_ms=1_000,
        revoke_callback_ms=100,
    )


@pytest.mark.parametrize("exact", [False, True])
def test_poll_throws_what_is_reported_behind_its_callbacks_and_the_process_commits_no_more(
    exact: bool,
) -> None:
    """onPartitionsAssigned takes until 2004, so a heartbeat leaves at 17004. Its answer brings a partition.
    The application works on two records until 17008; its poll() commits until 17010, and the callback takes
    until 19010. Then it gets the error of 18 s. Commits would begin again at 24010."""
    group = Group(exact, assign_callback_ms=2_000, record_rate=1, process_ms=1, **AUTO_COMMIT)
    process = group.started()
    group.until(13_000)
    group.world.add_partitions("topic-0", 3)
    group.until(18_000)
    answer(process, epoch=3, error=Error.TOPIC_AUTHORIZATION_FAILED)
    group.until(19_009)
    assert process.alive
    group.until(20_000)
    commits = group.counted("OffsetCommit")
    group.until(50_000)
    assert group.rows(18_000) == ["19010 member_failed member-0 TOPIC_AUTHORIZATION_FAILED"]
    assert group.counted("OffsetCommit") == commits > 0


@pytest.mark.parametrize("exact", [False, True])
def test_a_process_that_fails_in_the_poll_that_takes_a_partition_does_not_begin_to_commit(
    exact: bool,
) -> None:
    """The application polls at 10002, 20002 ... The member learns at 25002 of another partition, commits in
    the poll() of 30002, and takes the partition in that of 40002, which throws the error of 35 s. The commits
    of the new series would leave at 45002, 50002 ..."""
    group = Group(exact, poll_interval_ms=10_000, record_rate=1, process_ms=1, **AUTO_COMMIT)
    process = group.started()
    group.until(21_000)
    group.world.add_partitions("topic-0", 3)
    group.until(35_000)
    answer(process, epoch=3, error=Error.TOPIC_AUTHORIZATION_FAILED)
    group.until(41_000)
    assert group.rows(36_000) == ["40002 member_failed member-0 TOPIC_AUTHORIZATION_FAILED"]
    commits = group.counted("OffsetCommit")
    group.until(70_000)
    assert group.counted("OffsetCommit") == commits > 0


def test_poll_throws_if_the_client_has_unsubscribed_before_it_takes_a_partition() -> None:
    """The application polls at 10002, 20002 ... The member learns at 25002 of another partition, commits in
    the poll() of 30002, and would take the partition in that of 40002. At 31 s no topic is left that matches
    the pattern."""
    group = Group(poll_interval_ms=10_000, topic_pattern="topic-.*", record_rate=1, **AUTO_COMMIT)
    group.started()
    group.until(21_000)
    group.world.add_partitions("topic-0", 3)
    group.until(31_000)
    group.world.delete_topic("topic-0")
    group.until(41_000)
    assert group.rows(36_000) == ["40002 member_failed member-0 IllegalArgumentException"]


def test_a_poll_before_a_refresh_of_metadata_counts() -> None:
    """The application polls at 8002, 16002, 24002 and 32002, and has 8.3 s. Heartbeats leave at 28000 and
    33000, and are sent because of the long backoff. The client refreshes at 32500: the poll() of 24002 would
    be too long ago."""
    slow: dict[str, Any] = {"max.poll.interval.ms": 8_300, "retry.backoff.ms": 4_998}
    group = Group(poll_interval_ms=8_000, **slow, **{"metadata.max.age.ms": 32_500})
    process = group.started()
    group.until(30_000)
    process.metadata_may_have_changed()
    group.until(40_000)
    assert group.rows(8_003) == []
    assert process.settled


def test_the_network_thread_runs_at_a_refresh_of_metadata_and_sees_that_polls_are_late() -> None:
    """The poll() of 10 s returns a batch that takes a minute, so the next one is late at 30000. The heartbeat
    that would see it leaves at 30004."""
    group = Group(**{"max.poll.interval.ms": 20_000, "metadata.max.age.ms": 30_002})
    process = group.started()
    group.until(10_000)
    process.pauses.busy(60_000_000)
    group.until(20_000)
    process.metadata_may_have_changed()
    group.until(31_000)
    assert group.rows(10_001) == [
        "30002 partitions_paused member-0 0-0,0-1 0,0",
        "30003 member_removed member-0 left",
        "30003 group_state_changed Empty 3",
    ]
