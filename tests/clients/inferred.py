"""Members of both protocols: their requests and responses, and the coordinator's events that are inferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
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
    """A member's id is its client's name behind "id-". The topic t has two partitions."""

    def __init__(self, *, downgrades: bool = True) -> None:
        self.emitted: list[Any] = []
        self.inferred = InferredMigration(
            "g", self.emitted.append, lambda: {T: "t"}, lambda: {"t": 2}, downgrades=downgrades
        )

    def told(self) -> list[str]:
        """The events since the last call: states by name and generation, other events by type."""
        told = [_shown(event) for event in self.emitted]
        self.emitted.clear()
        return told

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.emitted if isinstance(event, kind)]

    @property
    def states(self) -> list[tuple[str, int, str]]:
        """The states that the group went to, with the generation and the cause."""
        return [(event.state, event.generation, event.cause) for event in self.of(events.GroupStateChanged)]

    # -- the classic protocol --------------------------------------------------------------------

    def asks(
        self, name: str, member_id: str | None = None, instance: str | None = None, owned: Sequence[int] = ()
    ) -> JoinGroup:
        """A JoinGroup that has no response yet."""
        owns = tuple(TopicPartition("t", number) for number in owned)
        protocols = (("range", encode_subscription(Subscription(("t",), owned=owns))),)
        known = f"id-{name}" if member_id is None else member_id
        request = JoinGroup("g", known, instance, 10_000, 60_000, "consumer", protocols, 9, name)
        self.inferred.request_sent(request)
        return request

    def joined(
        self,
        request: JoinGroup,
        generation: int,
        leader: str = "",
        members: Sequence[str] = (),
        member_id: str | None = None,
    ) -> None:
        """``leader`` "": the response is that of a consumer group."""
        listed = tuple(JoinGroupMember(f"id-{one}", None, b"") for one in members)
        led_by = f"id-{leader}" if leader else ""
        known = request.member_id if member_id is None else member_id
        answer = JoinGroupResponse(Error.NONE, generation, known, led_by, "consumer", "range", members=listed)
        self.inferred.response_received(request, answer)

    def join(
        self,
        name: str,
        generation: int,
        leader: str = "",
        owned: Sequence[int] = (),
        instance: str | None = None,
        members: Sequence[str] = (),
    ) -> None:
        self.joined(self.asks(name, None, instance, owned), generation, leader, members)

    def given_id(self, name: str) -> None:
        answer = JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=f"id-{name}")
        self.inferred.response_received(self.asks(name, ""), answer)

    def sync(self, name: str, generation: int, *given: int, error: Error = Error.NONE) -> None:
        request = SyncGroup("g", f"id-{name}", None, generation, "consumer", "range", (), 5, name)
        data = encode_assignment([("t", number) for number in given])
        self.inferred.response_received(request, SyncGroupResponse(error, "consumer", "range", data))

    def heartbeat(self, name: str, generation: int, error: Error) -> None:
        request = Heartbeat("g", f"id-{name}", None, generation, 4, name)
        self.inferred.response_received(request, HeartbeatResponse(error))

    def leave(self, name: str) -> None:
        request = LeaveGroup("g", (LeavingMember(f"id-{name}"),), 5, name)
        left = (LeftMember(f"id-{name}", None, Error.NONE),)
        self.inferred.response_received(request, LeaveGroupResponse(Error.NONE, left))

    # -- the consumer protocol -------------------------------------------------------------------

    def sends(
        self, name: str, epoch: int, owned: Sequence[int] | None = None, instance: str | None = None
    ) -> ConsumerGroupHeartbeat:
        """A heartbeat that has no response yet."""
        told = None if owned is None else ((T, tuple(owned)),)
        fields = (None, -1, None, None, None, told)
        request = ConsumerGroupHeartbeat("g", f"id-{name}", epoch, instance, *fields, client_id=name)
        self.inferred.request_sent(request)
        return request

    def beat(
        self,
        name: str,
        epoch: int,
        answered: int,
        given: Sequence[int] | None = None,
        owned: Sequence[int] | None = None,
        instance: str | None = None,
        error: Error = Error.NONE,
    ) -> list[str]:
        """Returns the events that come of it, as `told` does."""
        before = len(self.emitted)
        request = self.sends(name, epoch, owned, instance)
        assignment = None if given is None else {T: tuple(given)}
        response = ConsumerGroupHeartbeatResponse(error, f"id-{name}", answered, 5_000, assignment)
        self.inferred.response_received(request, response)
        return [_shown(event) for event in self.emitted[before:]]


def _shown(event: Any) -> str:
    if isinstance(event, events.GroupStateChanged):
        return f"{event.state} {event.generation}"
    return (
        f"{event.cause} {event.generation}"
        if isinstance(event, events.GroupConverted)
        else type(event).__name__
    )
