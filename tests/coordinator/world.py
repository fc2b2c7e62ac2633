"""A coordinator in virtual time as a Python object, for tests.

The coordinator draws the member ids "m1", "m2", and so on, in the order in which members need one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.config import CoordinatorConfig
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    DescribeGroupResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetchResponse,
    Response,
    SyncGroupResponse,
)
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.script.driver import Driver, Outcome, Sent
from groupstorm.coordinator.simulated import SimulatedGroupCoordinator
from groupstorm.trace.events import coordinator as events

RANGE = (("range", b""),)


def no_delay(**options: Any) -> CoordinatorConfig:
    """Options whose groups do not wait for their first members."""
    return CoordinatorConfig(**{"initial_rebalance_delay_ms": 0} | options)


class World:
    """Requests go in by method, time by `advance`; answers are kept by token.

    The methods are steps of `groupstorm script` as Python calls: `Driver` makes the requests, sends them
    and keeps the clock.
    """

    def __init__(
        self,
        config: CoordinatorConfig | None = None,
        moment: Callable[[], int] | None = None,
        keeps_offsets: bool = True,
    ) -> None:
        self.events: list[events.Event] = []
        self.replies: dict[Any, Response] = {}
        self.order: list[Any] = []
        self.answered_at_ms: dict[Any, int] = {}
        self._drawn = 0
        self._requests = 0
        self.driver = Driver(
            config or CoordinatorConfig(),
            names=Names("world"),
            member_ids=self._draw,
            coordinator=partial(SimulatedGroupCoordinator, moment=moment, keeps_offsets=keeps_offsets),
            keeps_records=True,
        )

    def _draw(self, prefix: str) -> str:
        self._drawn += 1
        return f"m{self._drawn}"

    @property
    def coordinator(self) -> SimulatedGroupCoordinator:
        coordinator = self.driver.coordinator
        assert isinstance(coordinator, SimulatedGroupCoordinator)
        return coordinator

    @property
    def now_ms(self) -> int:
        return self.driver.now_ms

    @property
    def appended(self) -> list[tuple[list[Record], AppendCause]]:
        return self.driver.appended

    @property
    def group(self) -> ClassicGroup:
        group = self.classic_group()
        assert group is not None
        return group

    def classic_group(self, name: str = "g") -> ClassicGroup | None:
        """The group of this name, if it is a classic one."""
        group = self.coordinator.group(name)
        return group if isinstance(group, ClassicGroup) else None

    @property
    def state(self) -> str:
        return self.group.state.value

    def take(self, effects: Effects) -> None:
        """Keep the effects of a call to the coordinator itself."""
        self._keep(self.driver.receive(effects))

    def _keep(self, outcome: Outcome) -> None:
        self.events += outcome.events
        for sent, response in outcome.answers:
            assert sent.token not in self.replies, f"{sent.token} was answered twice"
            self.replies[sent.token] = response
            self.order.append(sent.token)
            self.answered_at_ms[sent.token] = self.now_ms

    def send(self, request: Any, token: Any = None) -> Any:
        """Send a request; the token under which `replies` holds the answer as soon as there is one."""
        self._requests += 1
        token = f"request {self._requests}" if token is None else token
        self._keep(self.driver.send(Sent(token, "request", "", request)))
        return token

    def step(self, op: str, token: Any = None, **fields: Any) -> Any:
        """Send the request of a step of `groupstorm script`."""
        return self.send(self.driver.request({"op": op, **fields}, ""), token)

    def advance(self, duration_ms: int) -> None:
        """Time passes; every timer fires at its own millisecond."""
        for outcome in self.driver.advance(duration_ms):
            self._keep(outcome)

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
        return self.step(
            "join",
            token,
            group=group,
            member=member,
            instance=instance,
            version=version,
            session=session,
            rebalance=rebalance,
            type=kind,
            protocols=[list(pair) for pair in protocols],
            client_id="c",
        )

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
        return self.step(
            "sync",
            token,
            group=group,
            member=member,
            instance=instance,
            generation=self._generation(generation, group),
            type=kind,
            protocol=protocol,
            assignments=dict(plan or {}),
        )

    def _generation(self, generation: int | None, group: str) -> int:
        """The given generation, or the group's own."""
        if generation is not None:
            return generation
        known = self.classic_group(group)
        return known.generation if known else -1

    def heartbeat(
        self,
        member: str,
        *,
        instance: str | None = None,
        generation: int | None = None,
        group: str = "g",
    ) -> Error:
        token = self.step(
            "heartbeat",
            group=group,
            member=member,
            instance=instance,
            generation=self._generation(generation, group),
        )
        response = self.replies[token]
        assert isinstance(response, HeartbeatResponse)
        return response.error

    def leave(self, *members: str | tuple[str, str], group: str = "g") -> list[Error]:
        leaving = [[who, None] if isinstance(who, str) else list(who) for who in members]
        response = self.replies[self.step("leave", group=group, members=leaving)]
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
        response = self.replies[self.step("fetch_offsets", group=group, topics={"t": [0]})]
        assert isinstance(response, OffsetFetchResponse)
        return response.partitions[0][2].offset

    def move(self) -> None:
        """Another coordinator takes the group over."""
        self.take(self.coordinator.move(["g"], self.now_ms))

    def successor(self, **options: Any) -> World:
        """A new coordinator that has read what this one wrote."""
        other = World(no_delay(**options))
        other.driver.now_ms, other._drawn = self.now_ms, self._drawn
        records = [record for written, _ in self.appended for record in written]
        other.take(other.coordinator.load(records, self.now_ms))
        return other

    def describe(self, group: str = "g", version: int = 6) -> DescribeGroupResponse:
        response = self.replies[self.step("describe", group=group, version=version)]
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
