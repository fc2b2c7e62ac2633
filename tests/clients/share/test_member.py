"""A member of a share group without a broker: its heartbeats and its way through assignments."""

from __future__ import annotations

from uuid import UUID

from groupstorm.assignors.userdata import TopicPartition
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.consumer_group.member import ShareGroupMember
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.clients.operations import Left, RefreshTopics, RunCallback, SendHeartbeat
from groupstorm.clients.profiles import GroupProtocol
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse

ORDERS, LATE = UUID(int=1), UUID(int=2)
CONFIG = ConsumerConfig(
    "billing",
    "a",
    ("orders",),
    client_rack="r1",
    group_protocol=GroupProtocol.CONSUMER,
    enable_auto_commit=False,
)


class Network:
    """Carries out what the member asks for; its topics get names as the test says."""

    def __init__(self) -> None:
        self.names = {ORDERS: "orders"}
        self.member = ShareGroupMember(CONFIG, "m", lambda: self.names, 0)
        self.member.coordinator_found()
        self.member.subscribe(frozenset({"orders"}))
        self.now_ms = 0
        self.refreshes = 0
        self.has_left = False

    def sends(self) -> SendHeartbeat | None:
        """The heartbeat that leaves now. Callbacks end at once: there is no listener."""
        sent: list[SendHeartbeat] = []
        for _ in range(2):
            _ = self.member.step(self.now_ms)
            for operation in self.member.operations():
                match operation:
                    case SendHeartbeat():
                        sent.append(operation)
                    case RunCallback():
                        assert self.member.callback_begins()
                        self.member.callback_ended()
                    case RefreshTopics():
                        self.refreshes += 1
                    case Left():
                        self.has_left = True
        assert len(sent) <= 1
        return sent[0] if sent else None

    def exchange(
        self, epoch: int, assignment: dict[UUID, tuple[int, ...]] | None = None
    ) -> ShareGroupHeartbeat:
        """The next heartbeat, at once or an interval later, and its answer."""
        sent = self.sends()
        if sent is None:
            self.now_ms += 5_000
            sent = self.sends()
        assert sent is not None
        answer = ShareGroupHeartbeatResponse(Error.NONE, "m", epoch, 5_000, assignment)
        self.member.answered(sent, answer, self.now_ms)
        assert isinstance(sent.request, ShareGroupHeartbeat)
        return sent.request


def told(epoch: int, topics: tuple[str, ...] | None = None, rack: str | None = None) -> ShareGroupHeartbeat:
    return ShareGroupHeartbeat("billing", "m", epoch, rack, topics, client_id="a")


def owned(*numbers: int, topic: str = "orders") -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in numbers)


def test_a_member_joins_takes_assignments_at_once_and_leaves() -> None:
    network = Network()
    member = network.member
    assert network.sends() is None, "it joins in poll()"
    member.poll(0)
    assert network.exchange(1, {}) == told(0, ("orders",), "r1")
    assert network.exchange(2, {ORDERS: (0, 1)}) == told(1)
    assert network.exchange(2) == told(2)
    assert member.owned == owned(0, 1)
    assert network.exchange(3, {ORDERS: (1, 2)}) == told(2)
    assert network.exchange(3) == told(3)
    assert (member.owned, member.state) == (owned(1, 2), MemberState.STABLE)
    member.unsubscribe()
    assert network.exchange(-1) == told(-1, ())
    assert network.sends() is None
    assert (member.owned, network.has_left) == ((), True)


def test_a_topic_without_a_name_is_looked_up_and_taken_when_it_has_one() -> None:
    network = Network()
    network.member.poll(0)
    _ = network.exchange(1, {ORDERS: (0,), LATE: (0,)})
    _ = network.exchange(1)
    assert network.member.owned == owned(0)
    assert network.refreshes > 0
    network.names[LATE] = "late"
    _ = network.exchange(1)
    assert network.member.owned == owned(0, topic="late") + owned(0)


def test_a_fenced_member_gives_up_and_joins_again_with_everything() -> None:
    network = Network()
    network.member.poll(0)
    _ = network.exchange(1, {ORDERS: (0,)})
    _ = network.exchange(1)
    network.now_ms += 5_000
    sent = network.sends()
    assert sent is not None
    refused = ShareGroupHeartbeatResponse(Error.FENCED_MEMBER_EPOCH)
    network.member.answered(sent, refused, network.now_ms)
    assert network.exchange(4, {ORDERS: (0,)}) == told(0, ("orders",), "r1")
    _ = network.exchange(4)
    assert network.member.owned == owned(0)
