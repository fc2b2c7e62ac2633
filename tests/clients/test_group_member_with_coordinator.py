"""Members of a consumer group with our coordinator, in virtual time: no partition has two readers."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.member import ConsumerGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import (
    CommitWithEpoch,
    FindCoordinator,
    GroupOperation,
    Left,
    RefreshTopics,
    ReportError,
    RunCallback,
    SendHeartbeat,
    StopProcessing,
)
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeatResponse
from groupstorm.coordinator.topics import Topic

T = UUID(int=1)
PARTITIONS = 12
TICK_MS = 100


class _Cluster:
    """One coordinator and its members. An answer comes in the tick of its request."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.members: dict[str, _Client] = {}
        self.coordinator = GroupCoordinator(CoordinatorConfig(), member_ids=lambda prefix: prefix)
        self.grow(PARTITIONS)

    def grow(self, partitions: int) -> None:
        self.coordinator.update_topics({"t": Topic(T, partitions)}, (), self.now_ms)

    def start(self, name: str, **options: str | int) -> _Client:
        client = _Client(self, name, **options)
        self.members[name] = client
        return client

    def run(self, duration_ms: int) -> None:
        for _ in range(duration_ms // TICK_MS):
            self.now_ms += TICK_MS
            self.coordinator.fire(self.now_ms)
            for client in self.members.values():
                client.tick()
                readers = Counter(one for each in self.members.values() for one in each.reads)
                assert not [partition for partition, count in readers.items() if count > 1]

    def ask(self, sent: SendHeartbeat) -> ConsumerGroupHeartbeatResponse:
        [(_, response)] = self.coordinator.handle(sent.request, self.now_ms, 0).replies
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        return response

    def counts(self) -> dict[str, int]:
        return {name: len(client.reads) for name, client in self.members.items()}


class _Client:
    """A driver: it polls in every tick while ``polls``, commits and calls back at once."""

    def __init__(self, cluster: _Cluster, name: str, **options: str | int) -> None:
        self._cluster = cluster
        config = ConsumerConfig("g", name, ("t",), **options)  # type: ignore[arg-type]  # by their names
        self.member = ConsumerGroupMember(config, name, lambda: {T: "t"}, self._reads_any, cluster.now_ms)
        self.member.coordinator_found()
        self.member.subscribe(frozenset({"t"}))
        self.polls = True
        self.left = False
        self.reads: set[TopicPartition] = set()
        self._callbacks = 0

    def tick(self) -> None:
        if self.polls:
            self.member.poll(self._cluster.now_ms)
            self._carry_out()
            self._call_back()
        self.member.step(self._cluster.now_ms)
        self._carry_out()
        self.reads &= set(self.member.owned)

    def _reads_any(self) -> bool:
        return bool(self.reads)

    def crash(self) -> None:
        del self._cluster.members[self.member.member_id]

    def _call_back(self) -> None:
        while self._callbacks:
            self._callbacks -= 1
            before = set(self.member.owned)
            self.member.callback_begins()
            self.reads |= set(self.member.owned) - before
            self.member.callback_ended()
            self._carry_out()

    def _carry_out(self) -> None:
        while operations := self.member.operations():
            for operation in operations:
                self._do(operation)

    def _do(self, operation: GroupOperation) -> None:
        match operation:
            case SendHeartbeat():
                self.member.answered(operation, self._cluster.ask(operation), self._cluster.now_ms)
            case CommitWithEpoch():
                self.member.committed(Error.NONE, self._cluster.now_ms)
            case RunCallback():
                self._callbacks += 1
            case StopProcessing(partitions):
                self.reads -= set(partitions)
            case Left():
                self.left = True
            case FindCoordinator() | RefreshTopics() | ReportError():
                raise AssertionError(operation)


@pytest.fixture
def cluster() -> _Cluster:
    return _Cluster()


def test_members_that_come_one_after_the_other_share_the_partitions(cluster: _Cluster) -> None:
    for name in ("a", "b", "c"):
        cluster.start(name)
        cluster.run(2_000)
    cluster.run(30_000)
    assert cluster.counts() == {"a": 4, "b": 4, "c": 4}
    assert {client.member.state for client in cluster.members.values()} == {MemberState.STABLE}


def test_what_a_member_leaves_goes_to_the_others(cluster: _Cluster) -> None:
    a, _ = cluster.start("a"), cluster.start("b")
    cluster.run(20_000)
    a.member.unsubscribe()
    cluster.run(20_000)
    assert a.left
    assert cluster.counts() == {"a": 0, "b": PARTITIONS}


def test_what_a_crashed_member_had_goes_to_the_others_after_its_session(cluster: _Cluster) -> None:
    a, _ = cluster.start("a"), cluster.start("b")
    cluster.run(20_000)
    a.crash()
    cluster.run(40_000)
    assert cluster.counts() == {"b": PARTITIONS // 2}
    cluster.run(20_000)
    assert cluster.counts() == {"b": PARTITIONS}


def test_a_member_that_does_not_poll_leaves_and_comes_back(cluster: _Cluster) -> None:
    a, _ = cluster.start("a", max_poll_interval_ms=15_000), cluster.start("b")
    cluster.run(20_000)
    a.polls = False
    cluster.run(30_000)
    assert a.member.state is MemberState.STALE
    assert len(cluster.members["b"].reads) == PARTITIONS
    a.polls = True
    cluster.run(20_000)
    assert cluster.counts() == {"a": PARTITIONS // 2, "b": PARTITIONS // 2}


def test_a_static_member_that_closes_comes_back_to_its_partitions(cluster: _Cluster) -> None:
    a, b = cluster.start("a", group_instance_id="i"), cluster.start("b")
    cluster.run(20_000)
    before = set(a.reads), set(b.reads)
    a.member.close()
    cluster.run(1_000)
    assert a.left
    a.crash()
    again = cluster.start("a2", group_instance_id="i")
    cluster.run(20_000)
    assert (again.reads, b.reads) == before


def test_partitions_of_a_topic_that_grows_are_shared(cluster: _Cluster) -> None:
    cluster.start("a"), cluster.start("b")
    cluster.run(20_000)
    cluster.grow(2 * PARTITIONS)
    cluster.run(20_000)
    assert cluster.counts() == {"a": PARTITIONS, "b": PARTITIONS}
