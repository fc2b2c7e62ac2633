"""Topics, epochs and partitions that a member of a consumer group learns of, worked out by hand.

The times are those of `test_consumer_group_processes_by_hand`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.operations import StopProcessing
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, OffsetCommit
from groupstorm.storms.world.broker import VirtualBroker
from groupstorm.storms.world.consumer_group.process import ConsumerGroupProcess
from tests.storms.test_consumer_group_processes_by_hand import Group

COMMITS: dict[str, Any] = {"enable.auto.commit": True, "record_rate": 1, "process_ms": 1}


class Arrivals:
    """The requests that arrive at the coordinator: when (ms), and what."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[tuple[int, Any]] = []
        handle = VirtualBroker.handle

        def arrive(broker: VirtualBroker, request: Any, receive: Any) -> None:
            self.requests.append((broker.clock.now_us // 1_000, request))
            handle(broker, request, receive)

        monkeypatch.setattr(VirtualBroker, "handle", arrive)


def created_anew() -> Group:
    """A group one of whose topics is deleted at 20 s and created anew at 60 s, with one partition.

    Heartbeats leave every 5 s from 20006 on, when the member has given up the partitions that are gone.
    """
    group = Group(topics=2)
    group.started()
    group.until(20_000)
    group.world.delete_topic("topic-1")
    group.until(60_000)
    group.world.add_partitions("topic-1", 1)
    return group


def test_a_client_that_does_not_know_an_assigned_topic_refreshes_its_metadata() -> None:
    """It learns at 60008 that it has a partition of a topic which is new to it, asks for the topics
    retry.backoff.ms later, takes the partition at 60108, and looks its offset up."""
    group = created_anew()
    group.until(62_000)
    assert group.rows(60_001) == [
        "60007 member_reconciled member-0 4 STABLE 0-0,0-1,1-0",
        "60110 partitions_assigned member-0 4 1-0 0",
    ]


def test_a_client_that_does_not_know_an_assigned_topic_acknowledges_what_it_has_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the partition when it has taken it, but not before the answer to the heartbeat of 60108."""
    arrivals = Arrivals(monkeypatch)
    group = created_anew()
    group.until(62_000)
    told = [
        (ms, len(request.owned))
        for ms, request in arrivals.requests
        if isinstance(request, ConsumerGroupHeartbeat) and ms > 60_000 and request.owned is not None
    ]
    assert told == [(60_009, 1), (60_111, 2)]


def test_commits_tell_the_epoch_that_the_member_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second member joins at 7 s and gets nothing. The first one learns of the epoch at 10006."""
    arrivals = Arrivals(monkeypatch)
    group = Group(True, partitions=1, **COMMITS)
    group.started(0)
    group.until(7_000)
    group.started(1)
    group.until(21_000)
    commits = [
        (ms, request.generation) for ms, request in arrivals.requests if isinstance(request, OffsetCommit)
    ]
    assert commits == [(5_005, 2), (10_005, 2), (15_005, 3), (20_005, 3)]


# --- partitions that stand still


def stop_processing(process: ConsumerGroupProcess, number: int) -> None:
    """The member asks for a stop of one partition."""
    operation = StopProcessing((TopicPartition("topic-0", number),))
    member: Any = SimpleNamespace(
        operations=lambda: [operation], state=process.group_member.state, epoch=2, member_id="m-1"
    )
    process.group_member = member
    process.carry_out()


def test_a_row_tells_which_partitions_go_on_if_one_of_them_stops() -> None:
    group = Group(**COMMITS)
    process = group.started()
    group.until(6_000)
    before = group.rates()
    stop_processing(process, 1)
    assert group.rates() == [*before, (6_000, ("topic-0-0",))]


def test_no_row_tells_that_a_partition_stops_which_has_not_begun() -> None:
    group = Group(**COMMITS)
    process = group.started()
    group.until(6_000)
    before = group.rates()
    stop_processing(process, 7)
    assert group.rates() == before


def test_a_background_commit_that_has_arrived_counts_before_a_partition_stops() -> None:
    """Commits leave every 5 s from the acknowledgement on, at 5004 and 10004. The last poll() before was at
    9956: the application had taken the records of 1 s to 9 s."""
    group = Group(**COMMITS)
    process = group.started()
    group.until(11_000)
    stop_processing(process, 1)
    assert group.environment.records.committed == {
        TopicPartition("topic-0", 0): 9,
        TopicPartition("topic-0", 1): 9,
    }
