"""The coordinator's events of a consumer group, inferred from its members' heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from groupstorm.clients.inferred_consumer_group import InferredConsumerGroup
from groupstorm.clients.operations import Disconnected
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse
from groupstorm.trace.events import coordinator as events

T = UUID(int=1)


class Group:
    """Heartbeats of members and the inferred events. The topic has two partitions."""

    def __init__(self) -> None:
        self.emitted: list[events.Event] = []
        self.inferred = InferredConsumerGroup("g", self.emitted.append, lambda: {T: "t"}, lambda: {"t": 2})

    def heartbeat(
        self,
        member: str,
        epoch: int,
        answered: int,
        assigned: Sequence[int] | None = None,
        owned: Sequence[int] | None = None,
        instance: str | None = None,
        error: Error = Error.NONE,
    ) -> list[str]:
        """Returns the names of the events that came of it."""
        self.emitted.clear()
        request = self.request(member, epoch, owned, instance)
        given = None if assigned is None else {T: tuple(assigned)}
        response = ConsumerGroupHeartbeatResponse(error, f"id-{member}", answered, 5_000, given)
        self.inferred.response_received(request, response)
        return [type(event).__name__ for event in self.emitted]

    @staticmethod
    def request(
        member: str, epoch: int, owned: Sequence[int] | None = None, instance: str | None = None
    ) -> ConsumerGroupHeartbeat:
        told = None if owned is None else ((T, tuple(owned)),)
        return ConsumerGroupHeartbeat(
            "g", f"id-{member}", epoch, instance, None, -1, None, None, None, told, client_id=member
        )

    def of(self, kind: type) -> list[events.Event]:
        return [event for event in self.emitted if isinstance(event, kind)]

    @property
    def states(self) -> list[tuple[str, int]]:
        return [
            (event.state, event.generation)
            for event in self.emitted
            if isinstance(event, events.GroupStateChanged)
        ]


def shared() -> Group:
    """A group whose members a and b have a partition each, at epoch 3."""
    group = Group()
    group.heartbeat("a", 0, 2, [0, 1], [])
    group.heartbeat("a", 2, 2, owned=[0, 1])
    group.heartbeat("b", 0, 3, [], [])
    group.heartbeat("a", 2, 2, [0])
    group.heartbeat("a", 2, 3, owned=[0])
    group.heartbeat("b", 3, 3, [1])
    return group


def test_the_first_member_makes_the_group_stable() -> None:
    group = Group()
    assert group.heartbeat("a", 0, 2, [0, 1], []) == [
        "MemberAdded",
        "GroupEpochBumped",
        "TargetAssigned",
        "MemberReconciled",
        "GroupStateChanged",
    ]
    assert group.states == [("Stable", 2)]
    assert group.heartbeat("a", 2, 2, owned=[0, 1]) == []


def test_a_handover_is_told_step_by_step() -> None:
    group = Group()
    group.heartbeat("a", 0, 2, [0, 1], [])
    group.heartbeat("a", 2, 2, owned=[0, 1])
    group.heartbeat("b", 0, 3, [], [])
    assert group.states == [("Reconciling", 3)]
    assert group.heartbeat("a", 2, 2, [0]) == ["MemberReconciled"]
    [progress] = group.of(events.MemberReconciled)
    assert progress == events.MemberReconciled(
        "g", "a", "id-a", 2, "UNREVOKED_PARTITIONS", ("t-0",), ("t-1",)
    )
    assert group.heartbeat("a", 2, 3, owned=[0]) == ["MemberReconciled"]
    assert group.heartbeat("b", 3, 3, [1]) == ["MemberReconciled", "GroupStateChanged"]
    assert group.states == [("Stable", 3)]


def test_a_member_that_leaves_makes_the_group_assign() -> None:
    group = shared()
    assert group.heartbeat("b", -1, -1) == ["MemberRemoved", "GroupEpochBumped", "GroupStateChanged"]
    assert group.states == [("Assigning", 4)]
    group.heartbeat("a", 3, 4, [0, 1])
    assert group.states == [("Stable", 4)]
    group.heartbeat("a", -1, -1)
    assert group.states == [("Empty", 5)]


def test_a_dead_process_is_removed_when_the_epoch_counts_up_by_itself() -> None:
    group = shared()
    group.inferred.member_gone("b")
    assert group.heartbeat("a", 3, 3) == []
    group.heartbeat("a", 3, 4, [0, 1])
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "session-expired")


def test_a_fenced_member_is_removed_and_joins_again() -> None:
    group = shared()
    assert "MemberRemoved" in group.heartbeat("b", 3, 0, error=Error.UNKNOWN_MEMBER_ID)
    assert "MemberAdded" in group.heartbeat("b", 0, 5, [], [])


def test_a_static_member_that_comes_back_is_replaced() -> None:
    group = Group()
    group.heartbeat("a", 0, 2, [0, 1], [], instance="i")
    assert group.heartbeat("a", -2, -2, instance="i") == []
    names = group.heartbeat("c", 0, 2, [0, 1], [], instance="i")
    assert names == ["MemberReplaced", "MemberReconciled"]


def test_a_lost_connection_and_other_errors_tell_nothing() -> None:
    group = shared()
    assert group.heartbeat("a", 3, 0, error=Error.COORDINATOR_LOAD_IN_PROGRESS) == []
    group.inferred.response_received(group.request("a", 3), Disconnected())
    assert group.emitted == []


def test_a_partition_is_given_up_before_it_is_given_on_whichever_response_comes_first() -> None:
    group = Group()
    group.heartbeat("a", 0, 2, [0, 1], [])
    group.heartbeat("a", 2, 2, owned=[0, 1])
    group.heartbeat("b", 0, 3, [], [])
    group.heartbeat("a", 2, 2, [0])
    group.inferred.request_sent(group.request("a", 2, [0]))
    assert group.heartbeat("b", 3, 3, [1]) == ["MemberReconciled", "MemberReconciled"]
    first, second = group.of(events.MemberReconciled)
    assert first == events.MemberReconciled("g", "a", "id-a", 2, "STABLE", ("t-0",), ())
    assert second == events.MemberReconciled("g", "b", "id-b", 3, "STABLE", ("t-1",), ())
    assert group.heartbeat("a", 2, 3, owned=[0]) == ["MemberReconciled", "GroupStateChanged"]


def test_a_member_has_left_before_its_partitions_are_given_on_whichever_response_comes_first() -> None:
    group = shared()
    group.inferred.request_sent(group.request("b", -1))
    names = group.heartbeat("a", 3, 4, [0, 1])
    assert names.index("MemberRemoved") < names.index("MemberReconciled")
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "left")
    assert group.heartbeat("b", -1, -1) == []


def test_a_heartbeat_that_gives_nothing_up_changes_no_other_member() -> None:
    group = shared()
    group.inferred.request_sent(group.request("a", 3, [0]))
    assert group.heartbeat("b", 3, 3, [1]) == []


def test_a_member_whose_response_to_its_leave_is_lost_is_removed_with_the_next_epoch() -> None:
    group = shared()
    group.inferred.response_received(group.request("b", -1), Disconnected())
    names = group.heartbeat("a", 3, 4, [0, 1])
    assert names.index("MemberRemoved") < names.index("MemberReconciled")


def test_a_member_whose_partitions_another_gets_has_lost_its_session() -> None:
    group = shared()
    names = group.heartbeat("a", 3, 4, [0, 1])
    assert names[:2] == ["MemberRemoved", "GroupEpochBumped"]
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 4, "session-expired")
    assert group.heartbeat("b", 3, 0, error=Error.UNKNOWN_MEMBER_ID) == []


def test_a_member_is_removed_if_others_reached_the_epoch_before_they_get_its_partitions() -> None:
    group = shared()
    group.heartbeat("c", 0, 4, [], [])
    group.heartbeat("a", 3, 5)
    assert "MemberRemoved" not in group.heartbeat("c", 4, 5)
    assert group.heartbeat("c", 5, 5, [1])[0] == "MemberRemoved"
    [removed] = group.of(events.MemberRemoved)
    assert removed == events.MemberRemoved("g", "b", "id-b", None, 5, "session-expired")


def test_what_a_heartbeat_gives_up_may_have_arrived_although_its_response_is_lost() -> None:
    group = Group()
    group.heartbeat("a", 0, 2, [0, 1], [])
    group.heartbeat("a", 2, 2, owned=[0, 1])
    group.heartbeat("b", 0, 3, [], [])
    group.heartbeat("a", 2, 2, [0])
    given_up = group.request("a", 2, [0])
    group.inferred.request_sent(given_up)
    group.inferred.response_received(given_up, Disconnected())
    assert group.heartbeat("b", 3, 3, [1]) == ["MemberReconciled", "MemberReconciled"]
