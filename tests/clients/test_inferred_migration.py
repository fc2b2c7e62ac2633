"""The coordinator's events of a group that migrates, inferred from its members' requests and responses."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from groupstorm.clients.inferred_migration import InferredMigration
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResponse,
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

T = UUID(int=1)


class Group:
    """Members of both protocols; their ids are their names. The topic t has two partitions."""

    def __init__(self, *, downgrades: bool = True) -> None:
        self.emitted: list[events.Event] = []
        self.inferred = InferredMigration(
            "g", self.emitted.append, lambda: {T: "t"}, lambda: {"t": 2}, downgrades=downgrades
        )

    def told(self) -> list[str]:
        """The events emitted since the last call: states by name and generation, other events by type."""
        told = [
            f"{event.state} {event.generation}"
            if isinstance(event, events.GroupStateChanged)
            else f"{event.cause} {event.generation}"
            if isinstance(event, events.GroupConverted)
            else type(event).__name__
            for event in self.emitted
        ]
        self.emitted.clear()
        return told

    def join(
        self,
        name: str,
        generation: int,
        leader: str = "",
        owned: Sequence[int] = (),
        instance: str | None = None,
        members: Sequence[str] = (),
    ) -> None:
        """``leader`` "": the response is that of a consumer group."""
        metadata = encode_subscription(
            Subscription(("t",), owned=tuple(TopicPartition("t", number) for number in owned))
        )
        request = JoinGroup("g", name, instance, 10_000, 60_000, "consumer", (("range", metadata),), 9, name)
        self.inferred.request_sent(request)
        listed = tuple(JoinGroupMember(one, None, b"") for one in members)
        response = JoinGroupResponse(
            Error.NONE, generation, name, leader, "consumer", "range", members=listed
        )
        self.inferred.response_received(request, response)

    def sync(self, name: str, generation: int, *given: int) -> None:
        request = SyncGroup("g", name, None, generation, "consumer", "range", (), 5, name)
        data = encode_assignment([("t", number) for number in given])
        self.inferred.response_received(request, SyncGroupResponse(Error.NONE, "consumer", "range", data))

    def heartbeat(self, name: str, generation: int, error: Error) -> None:
        self.inferred.response_received(
            Heartbeat("g", name, None, generation, 4, name), HeartbeatResponse(error)
        )

    def leave(self, name: str) -> None:
        self.inferred.response_received(
            LeaveGroup("g", (LeavingMember(name),), 5, name),
            LeaveGroupResponse(Error.NONE, (LeftMember(name, None, Error.NONE),)),
        )

    def beat(
        self,
        name: str,
        epoch: int,
        answered: int,
        given: Sequence[int] | None = None,
        owned: Sequence[int] | None = None,
        instance: str | None = None,
        error: Error = Error.NONE,
    ) -> None:
        """A heartbeat of the new protocol."""
        told = None if owned is None else ((T, tuple(owned)),)
        request = ConsumerGroupHeartbeat(
            "g", name, epoch, instance, None, -1, None, None, None, told, client_id=name
        )
        self.inferred.request_sent(request)
        assignment = None if given is None else {T: tuple(given)}
        response = ConsumerGroupHeartbeatResponse(error, name, answered, 5_000, assignment)
        self.inferred.response_received(request, response)


def alone(*, downgrades: bool = True) -> Group:
    """b has left a classic group: a has both partitions, in generation 2."""
    group = Group(downgrades=downgrades)
    group.join("a", 1, "a", members=("a", "b"))
    group.join("b", 1, "a")
    group.sync("a", 1, 0)
    group.sync("b", 1, 1)
    group.leave("b")
    group.join("a", 2, "a", owned=(0,), members=("a",))
    group.sync("a", 2, 0, 1)
    assert group.told()[-2:] == ["Stable 2", "SyncAnswered"]
    return group


def upgraded(*, downgrades: bool = True) -> Group:
    """c has come to it with the new protocol: a has t-0, c has t-1, at epoch 3."""
    group = alone(downgrades=downgrades)
    group.beat("c", 0, 3, (), ())
    group.join("a", 2, owned=(0, 1))
    group.sync("a", 2, 0)
    group.join("a", 3, owned=(0,))
    group.sync("a", 3, 0)
    group.beat("c", 3, 3, (1,))
    return group


def test_the_first_heartbeat_upgrades_the_group() -> None:
    group = alone()
    group.beat("c", 0, 3, (), ())
    assert group.told() == [
        "upgraded 2", "MemberAdded", "GroupEpochBumped", "TargetAssigned", "MemberReconciled",
        "Reconciling 3",
    ]  # fmt: skip


def test_a_classic_member_gives_a_partition_up_before_the_new_one_has_it() -> None:
    group = upgraded()
    held = [
        (event.member, event.generation, event.partitions)
        for event in group.emitted
        if isinstance(event, events.MemberReconciled)
    ]
    assert held == [
        ("c", 3, ()),
        ("a", 2, ("t-0", "t-1")),
        ("a", 2, ("t-0",)),
        ("a", 3, ("t-0",)),
        ("c", 3, ("t-1",)),
    ]
    assert group.told()[-1] == "Stable 3"


def test_a_joingroup_that_has_no_response_yet_gives_partitions_up() -> None:
    """An eager member owns nothing when it joins."""
    group = alone()
    group.beat("c", 0, 3, (), ())
    group.join("a", 2, owned=(0, 1))
    group.emitted.clear()
    metadata = encode_subscription(Subscription(("t",)))
    protocols = (("range", metadata),)
    group.inferred.request_sent(JoinGroup("g", "a", None, 10_000, 60_000, "consumer", protocols, 9, "a"))
    group.beat("c", 3, 3, (1,))
    held = [event for event in group.emitted if isinstance(event, events.MemberReconciled)]
    assert [(event.member, event.partitions) for event in held] == [("a", ()), ("c", ("t-1",))]


def test_the_last_member_of_the_new_protocol_leaves_and_the_others_rebalance() -> None:
    group = upgraded()
    group.told()
    group.beat("c", -1, -1)
    assert group.told() == ["MemberRemoved", "downgraded 3", "PreparingRebalance 3"]
    group.join("a", 4, "a", owned=(0,), members=("a",))
    group.sync("a", 4, 0, 1)
    assert group.told() == ["CompletingRebalance 4", "JoinAnswered", "Stable 4", "SyncAnswered"]


def test_without_a_policy_that_allows_it_the_group_stays_a_consumer_group() -> None:
    group = upgraded(downgrades=False)
    group.told()
    group.beat("c", -1, -1)
    assert group.told() == ["MemberRemoved", "GroupEpochBumped", "Assigning 4"]
    group.join("a", 4, owned=(0,))
    group.sync("a", 4, 0, 1)
    assert group.told()[-2:] == ["Stable 4", "SyncAnswered"]


def test_a_leader_in_a_response_says_that_the_members_of_the_new_protocol_are_gone() -> None:
    """Nobody told that c's session has expired."""
    group = upgraded()
    group.told()
    group.heartbeat("a", 3, Error.REBALANCE_IN_PROGRESS)
    assert group.told() == []
    group.join("a", 4, "a", owned=(0,), members=("a",))
    assert group.told() == [
        "MemberRemoved", "downgraded 3", "PreparingRebalance 3", "CompletingRebalance 4", "JoinAnswered",
    ]  # fmt: skip


def test_a_static_member_takes_the_place_of_the_last_one_without_a_rebalance() -> None:
    group = Group()
    group.join("a", 1, "a", instance="i", members=("a",))
    group.sync("a", 1, 0, 1)
    group.beat("a2", 0, 1, (0, 1), (), instance="i")
    assert group.told()[-3:] == ["upgraded 1", "MemberReplaced", "MemberReconciled"]
    group.beat("b", 0, 2, (), (), instance="j")
    group.beat("b", -2, -2, instance="j")
    group.told()
    group.join("b2", 2, instance="j")
    assert group.told()[0] == "MemberReplaced"
    group.join("a3", 2, instance="i")
    assert group.told() == ["MemberReplaced", "downgraded 2", "Stable 2", "JoinAnswered"]


def test_members_that_are_out_are_removed() -> None:
    group = upgraded()
    group.told()
    group.heartbeat("a", 3, Error.UNKNOWN_MEMBER_ID)
    assert group.told()[0] == "MemberRemoved"
    group = upgraded()
    group.told()
    group.leave("a")
    assert group.told() == ["MemberRemoved", "GroupEpochBumped", "Assigning 4"]


def test_a_group_without_members_becomes_one_of_the_other_kind() -> None:
    group = upgraded()
    group.leave("a")
    group.beat("c", -1, -1)
    group.told()
    group.join("d", 1, "d", members=("d",))
    assert group.told()[0] == "GroupCreated"
    group.leave("d")
    group.told()
    group.beat("e", 0, 2, (0, 1), ())
    assert group.told()[:2] == ["GroupCreated", "MemberAdded"]
