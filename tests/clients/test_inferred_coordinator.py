"""The coordinator's events, inferred from the members' requests and responses."""

from __future__ import annotations

from groupstorm.assignors.userdata import TopicPartition, encode_assignment
from groupstorm.clients.inferred_coordinator import InferredCoordinator
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.trace.events import coordinator as events


class Group:
    """Requests and responses of members, and the inferred events."""

    def __init__(self) -> None:
        self.emitted: list[events.Event] = []
        self.coordinator = InferredCoordinator("g", self.emitted.append)

    @property
    def states(self) -> list[tuple[str, int, str]]:
        """The states that the group went to, with the generation and the cause."""
        changes = [event for event in self.emitted if isinstance(event, events.GroupStateChanged)]
        return [(event.state, event.generation, event.cause) for event in changes]

    def emitted_of(self, kind: type) -> list[events.Event]:
        return [event for event in self.emitted if isinstance(event, kind)]

    def join(self, client: str, member_id: str = "", instance: str | None = None) -> JoinGroup:
        request = JoinGroup(
            "g", member_id, instance, 10_000, 60_000, "consumer", (("range", b""),), 9, client
        )
        self.coordinator.request_sent(request)
        return request

    def joined(self, request: JoinGroup, member_id: str, generation: int, leader: str, *members: str) -> None:
        listed = tuple(JoinGroupMember(one, None, b"") for one in members)
        response = JoinGroupResponse(
            Error.NONE, generation, member_id, leader, "consumer", "range", members=listed
        )
        self.coordinator.response_received(request, response)

    def given_id(self, client: str, member_id: str) -> None:
        request = self.join(client)
        self.coordinator.response_received(
            request, JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=member_id)
        )

    def synced(
        self, client: str, member_id: str, generation: int, error: Error = Error.NONE, assignment: bytes = b""
    ) -> None:
        request = SyncGroup("g", member_id, None, generation, "consumer", "range", (), 5, client)
        self.coordinator.request_sent(request)
        self.coordinator.response_received(request, SyncGroupResponse(error, "consumer", "range", assignment))

    def heartbeat(self, client: str, member_id: str, generation: int, error: Error) -> None:
        request = Heartbeat("g", member_id, None, generation, 4, client)
        self.coordinator.request_sent(request)
        self.coordinator.response_received(request, HeartbeatResponse(error))

    def leave(self, client: str, member_id: str) -> None:
        request = LeaveGroup("g", (LeavingMember(member_id, None, None),), 5, client)
        self.coordinator.request_sent(request)
        left = (LeftMember(member_id, None, Error.NONE),)
        self.coordinator.response_received(request, LeaveGroupResponse(Error.NONE, left))

    def of_two(self) -> Group:
        """a-1 leads, b-1 follows, generation 1 is Stable."""
        self.given_id("a", "a-1")
        a = self.join("a", "a-1")
        self.given_id("b", "b-1")
        b = self.join("b", "b-1")
        self.joined(a, "a-1", 1, "a-1", "a-1", "b-1")
        self.joined(b, "b-1", 1, "a-1")
        self.synced("a", "a-1", 1, assignment=encode_assignment([TopicPartition("t", 0)]))
        self.synced("b", "b-1", 1, assignment=encode_assignment([TopicPartition("t", 1)]))
        return self


STABLE_1 = [
    ("PreparingRebalance", 0, "pending-member"),
    ("CompletingRebalance", 1, "all-joined"),
    ("Stable", 1, "assigned"),
]


def test_first_round() -> None:
    group = Group().of_two()
    assert group.states == STABLE_1
    completing = group.emitted_of(events.GroupStateChanged)[1]
    assert isinstance(completing, events.GroupStateChanged)
    assert (completing.leader, completing.protocol) == ("a-1", "range")
    assert [event.member for event in group.emitted_of(events.MemberAdded)] == ["a", "b"]  # type: ignore[union-attr]
    assert [event.partitions for event in group.emitted_of(events.SyncAnswered)] == [("t-0",), ("t-1",)]  # type: ignore[union-attr]


def test_new_member_opens_a_round_and_others_notice_later() -> None:
    group = Group().of_two()
    group.given_id("c", "c-1")
    assert group.states == STABLE_1, "MEMBER_ID_REQUIRED changes nothing"
    group.join("c", "c-1")
    group.heartbeat("a", "a-1", 1, Error.REBALANCE_IN_PROGRESS)
    assert group.states[3:] == [("PreparingRebalance", 1, "pending-member")]


def test_heartbeat_shows_a_foreign_round_and_the_leaders_response_the_removed_member() -> None:
    group = Group().of_two()
    group.heartbeat("a", "a-1", 1, Error.REBALANCE_IN_PROGRESS)
    again = group.join("a", "a-1")
    group.joined(again, "a-1", 2, "a-1", "a-1")
    assert group.states[3:] == [
        ("PreparingRebalance", 1, "session-expired"),
        ("CompletingRebalance", 2, "all-joined"),
    ]
    assert group.emitted_of(events.MemberRemoved) == [
        events.MemberRemoved("g", "b", "b-1", None, 2, "session-expired")
    ]


def test_late_response_of_an_older_round_changes_nothing() -> None:
    group = Group().of_two()
    again = group.join("a", "a-1")
    group.joined(again, "a-1", 2, "a-1", "a-1", "b-1")
    seen = group.states
    group.heartbeat("b", "b-1", 1, Error.REBALANCE_IN_PROGRESS)
    group.synced("b", "b-1", 1, Error.REBALANCE_IN_PROGRESS)
    assert group.states == seen


def test_follower_that_rejoins_unchanged_stays_in_the_generation() -> None:
    group = Group().of_two()
    again = group.join("b", "b-1")
    group.joined(again, "b-1", 1, "a-1")
    assert group.states == STABLE_1


def test_returning_static_member_replaces_itself() -> None:
    group = Group()
    first = group.join("a", instance="i")
    group.joined(first, "i-1", 1, "i-1", "i-1")
    group.synced("a", "i-1", 1)
    second = group.join("a", instance="i")
    group.joined(second, "i-2", 1, "i-1")
    assert group.states == [("PreparingRebalance", 0, "static-member"), *STABLE_1[1:]]
    assert group.emitted_of(events.MemberReplaced) == [events.MemberReplaced("g", "a", "i-2", "i-1", "i", 1)]


def test_last_member_that_leaves_empties_the_group() -> None:
    group = Group().of_two()
    group.leave("b", "b-1")
    group.leave("a", "a-1")
    assert group.states[3:] == [("PreparingRebalance", 1, "left"), ("Empty", 2, "no-members")]
    assert [event.member for event in group.emitted_of(events.MemberRemoved)] == ["b", "a"]  # type: ignore[union-attr]


def test_lost_response_emits_nothing() -> None:
    group = Group().of_two()
    emitted = list(group.emitted)
    group.coordinator.response_received(Heartbeat("g", "a-1", None, 1, 4, "a"), Disconnected())
    assert group.emitted == emitted
