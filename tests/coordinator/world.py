"""A coordinator with a clock of its own, for tests that tell a story.

Members go by short names: the first one that is sent an id is "m1", and so on. Every call
returns the replies that it brought about, as (token, response).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.coordinator import events
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.group import ClassicGroup
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DescribeGroup,
    DescribeGroupResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.sessions import LastContact

RANGE = (("range", b""),)


def no_delay(**options: Any) -> CoordinatorConfig:
    """Options whose groups do not wait for their first members."""
    return CoordinatorConfig(**{"initial_rebalance_delay_ms": 0} | options)


class World:
    """Requests go in by method, time by `advance`; what came back is kept by token."""

    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        last_contact: LastContact | None = None,
        keeps_offsets: bool = True,
    ) -> None:
        self.now_ms = 0
        #: How the next appends go.
        self.append_delay_ms = 0
        self.append_error: Error | None = None
        self.appended: list[tuple[list[Record], AppendCause]] = []
        self.events: list[events.Event] = []
        self.replies: dict[Any, Response] = {}
        self.order: list[Any] = []
        self.answered_at_ms: dict[Any, int] = {}
        self._drawn = 0
        self._requests = 0
        self.coordinator = GroupCoordinator(
            config or CoordinatorConfig(),
            member_ids=self._draw,
            append=self._append,
            last_contact=last_contact,
            whole_records=True,
            keeps_offsets=keeps_offsets,
        )

    def _draw(self, prefix: str) -> str:
        self._drawn += 1
        return f"m{self._drawn}"

    def _append(self, records: Sequence[Record], cause: AppendCause) -> tuple[int, Error | None]:
        self.appended.append((list(records), cause))
        return self.append_delay_ms, self.append_error

    @property
    def group(self) -> ClassicGroup:
        group = self.coordinator.group("g")
        assert group is not None
        return group

    @property
    def state(self) -> str:
        return self.group.state.value

    def take(self, effects: Effects) -> None:
        self.events += effects.events
        for token, response in effects.replies:
            assert token not in self.replies, f"{token} was answered twice"
            self.replies[token] = response
            self.order.append(token)
            self.answered_at_ms[token] = self.now_ms

    def send(self, request: Any, token: Any = None) -> Any:
        """The token, under which the response is found as soon as there is one."""
        self._requests += 1
        token = f"request {self._requests}" if token is None else token
        self.take(self.coordinator.handle(request, self.now_ms, token))
        return token

    def advance(self, duration_ms: int) -> None:
        """Time passes; every timer fires at its own millisecond."""
        until_ms = self.now_ms + duration_ms
        while (deadline_ms := self.coordinator.next_deadline()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(deadline_ms, self.now_ms)
            self.take(self.coordinator.fire(self.now_ms))
        self.now_ms = until_ms

    # requests, with what tests care about as arguments

    def join(
        self,
        member: str = "",
        instance: str | None = None,
        *,
        version: int = 3,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        kind: str = "consumer",
        session: int = 10_000,
        rebalance: int = 60_000,
        group: str = "g",
        token: Any = None,
    ) -> Any:
        request = JoinGroup(
            group, member, instance, session, rebalance, kind, protocols, version, client_id="c"
        )
        return self.send(request, token)

    def sync(
        self,
        member: str,
        plan: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        generation: int | None = None,
        kind: str | None = None,
        protocol: str | None = None,
        group: str = "g",
        token: Any = None,
    ) -> Any:
        known = self.coordinator.group(group)
        generation = (known.generation if known else -1) if generation is None else generation
        assignments = tuple((plan or {}).items())
        return self.send(
            SyncGroup(group, member, instance, generation, kind, protocol, assignments, 5), token
        )

    def heartbeat(
        self,
        member: str,
        *,
        instance: str | None = None,
        generation: int | None = None,
        group: str = "g",
    ) -> Error:
        known = self.coordinator.group(group)
        generation = (known.generation if known else -1) if generation is None else generation
        response = self.replies[self.send(Heartbeat(group, member, instance, generation, 4))]
        assert isinstance(response, HeartbeatResponse)
        return response.error

    def leave(self, *members: str | tuple[str, str], group: str = "g") -> list[Error]:
        leaving = tuple(
            LeavingMember(who) if isinstance(who, str) else LeavingMember(who[0], who[1]) for who in members
        )
        response = self.replies[self.send(LeaveGroup(group, leaving, 5))]
        assert isinstance(response, LeaveGroupResponse)
        return [member.error for member in response.members] or [response.error]

    def commit(
        self,
        member: str = "",
        *,
        instance: str | None = None,
        generation: int = -1,
        offset: int = 1,
        metadata: str = "",
        version: int = 9,
        group: str = "g",
    ) -> Error:
        offsets = {"t": {0: CommittedOffset(offset, metadata=metadata)}}
        token = self.send(OffsetCommit(group, member, instance, generation, offsets, version))
        response = self.replies[token]
        assert isinstance(response, OffsetCommitResponse)
        return response.partitions[0][2]

    def committed(self, group: str = "g") -> int:
        response = self.replies[self.send(OffsetFetch(group, {"t": (0,)}, 9))]
        assert isinstance(response, OffsetFetchResponse)
        return response.partitions[0][2].offset

    def move(self) -> None:
        """Another coordinator takes the group over."""
        self.take(self.coordinator.move(["g"], self.now_ms))

    def successor(self, **options: Any) -> World:
        """A new coordinator that has read what this one wrote."""
        other = World(no_delay(**options))
        other.now_ms, other._drawn = self.now_ms, self._drawn
        records = [record for written, _ in self.appended for record in written]
        other.take(other.coordinator.load(records, self.now_ms))
        return other

    def describe(self, group: str = "g", version: int = 6) -> DescribeGroupResponse:
        response = self.replies[self.send(DescribeGroup(group, version))]
        assert isinstance(response, DescribeGroupResponse)
        return response

    # what came back

    def joined(self, token: Any) -> JoinGroupResponse:
        response = self.replies[token]
        assert isinstance(response, JoinGroupResponse)
        return response

    def synced(self, token: Any) -> SyncGroupResponse:
        response = self.replies[token]
        assert isinstance(response, SyncGroupResponse)
        return response

    def error(self, token: Any) -> Error | None:
        """The error of a join or sync; None while it is parked."""
        response = self.replies.get(token)
        assert response is None or isinstance(response, JoinGroupResponse | SyncGroupResponse)
        return None if response is None else response.error

    def of(self, kind: type) -> list[Any]:
        """The events of that type so far."""
        return [event for event in self.events if isinstance(event, kind)]

    # ways to a state

    def stable(self, members: int = 2, **join: Any) -> list[str]:
        """A stable group of that many members, m1 being its leader; with no initial delay."""
        for _ in range(members):
            self.join(**join)
        self.advance(0)
        ids = [f"m{number}" for number in range(1, members + 1)]
        for member in ids:
            if self.error(token := self.join(member, **join)) is None:
                continue
            assert self.joined(token).error is Error.NONE
        self.complete()
        return ids

    def complete(self, plan: dict[str, bytes] | None = None) -> None:
        """Every member of the generation syncs, the leader last."""
        group = self.group
        assert group.leader is not None
        ids = sorted(group.members, key=lambda member: member == group.leader)
        for member in ids:
            self.sync(member, plan if plan is not None else {who: who.encode() for who in ids})
        assert self.state == "Stable"
