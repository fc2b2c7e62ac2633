"""A broker that records what a member asks and answers as a script says.

The shell, the codec and every API without groups are those of `groupstorm serve`. In place of the
coordinator stands one of a group of a single member, without timers: every answer is what the script
says or, where it says nothing, what would make the member content. Member ids are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from groupstorm.assignors.userdata import encode_assignment
from groupstorm.broker.broker import Broker
from groupstorm.broker.config import BrokerConfig
from groupstorm.broker.log.topics import Topics
from groupstorm.broker.requests import BrokerEffects, ConnectionOutput, Peer
from groupstorm.broker.shell import Server
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.coordinator import GroupCoordinator
from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import (
    CommittedOffset,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    Request,
    Response,
    SyncGroup,
    SyncGroupResponse,
)
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.topics import Topic
from groupstorm.protocol.codec import encoder, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import frame as framed
from groupstorm.protocol.headers import read_header, response_header
from groupstorm.turns import Turns
from tests.oracle.member.requests import Json, read_request

#: The n-th request of an API, from 1.
On = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Reaction:
    """The reaction to one request.

    ``error``: it is refused. ``replaced``: fields of the answer that are other than they would be.
    ``dropped``: the connection is closed instead. ``silent``: there is never an answer.
    ``partitions``: a topic has this many partitions from now on.
    """

    error: Error | None = None
    replaced: Mapping[str, Any] = field(default_factory=dict)
    dropped: bool = False
    silent: bool = False
    partitions: Mapping[str, int] = field(default_factory=dict)


class SingleMemberCoordinator:
    """Answers as the coordinator of a group of one: a `groupstorm.broker.group_coordination.Coordinator`."""

    def __init__(self, reaction: Callable[[Request], Reaction]) -> None:
        self._reaction = reaction
        self._generation = 0
        self._ids = 0

    def handle(
        self, request: Request, _now_ms: int, token: Any, _may_match: Callable[[str], bool] | None, /
    ) -> Effects:
        reaction = self._reaction(request)
        if reaction.silent:
            return Effects([], [], [])
        response = (
            _refusal(request, reaction.error) if reaction.error is not None else self._contented(request)
        )
        return Effects([(token, response._replace(**reaction.replaced))], [], [])

    def next_deadline(self) -> int | None:
        return None

    def fire(self, _now_ms: int, /) -> Effects:
        return Effects([], [], [])

    def update_topics(
        self, _changed: Mapping[str, Topic], _removed: Sequence[str], _now_ms: int, /
    ) -> Effects:
        return Effects([], [], [])

    def set_group_options(self, _group: str, _options: Mapping[str, int | str], /) -> None:
        pass

    def take_long_work(self) -> list[Turns[Effects]]:
        return []

    def end_transaction(self, _producer_id: int, _is_commit: bool, _now_ms: int, /) -> Effects:
        return Effects([], [], [])

    def expire_session(self, _group: str, _member_id: str, _now_ms: int, /) -> Effects:
        return Effects([], [], [])

    def move(self, _groups: Iterable[str], _now_ms: int, /) -> Effects:
        return Effects([], [], [])

    def unload(self, _now_ms: int, /) -> Effects:
        return Effects([], [], [])

    def snapshot(self) -> list[Record]:
        return []

    @property
    def groups(self) -> Sequence[str]:
        return ()

    def _contented(self, request: Request) -> Response:
        match request:
            case JoinGroup():
                return self._join(request)
            case SyncGroup():
                return _sync(request)
            case OffsetFetch():
                return _fetch(request)
            case Heartbeat() | LeaveGroup() | OffsetCommit():
                return _refusal(request, Error.NONE)
        raise AssertionError(f"a member does not send {type(request).__name__}")

    def _join(self, request: JoinGroup) -> JoinGroupResponse:
        member_id = request.member_id
        if not member_id:
            self._ids += 1
            member_id = f"{request.group_instance_id or request.client_id}-{self._ids}"
            if request.group_instance_id is None:
                return JoinGroupResponse(Error.MEMBER_ID_REQUIRED, member_id=member_id)
        self._generation += 1
        protocol, metadata = request.protocols[0]
        members = (JoinGroupMember(member_id, request.group_instance_id, metadata),)
        return JoinGroupResponse(
            Error.NONE,
            self._generation,
            member_id,
            leader=member_id,
            protocol_type=request.protocol_type,
            protocol=protocol,
            members=members,
        )


def _sync(request: SyncGroup) -> SyncGroupResponse:
    """The leader gets what it has planned for itself, a follower nothing."""
    plan = dict(request.assignments)
    assignment = plan.get(request.member_id, encode_assignment(()))
    return SyncGroupResponse(Error.NONE, request.protocol_type, request.protocol, assignment)


def _fetch(request: OffsetFetch) -> OffsetFetchResponse:
    nothing = CommittedOffset(-1)
    partitions = tuple(
        (topic, partition, nothing, Error.NONE)
        for topic, listed in (request.topics or {}).items()
        for partition in listed
    )
    return OffsetFetchResponse(Error.NONE, partitions)


def _refusal(request: Request, error: Error) -> Response:
    match request:
        case JoinGroup():
            return JoinGroupResponse(error, member_id=request.member_id)
        case SyncGroup():
            return SyncGroupResponse(error)
        case Heartbeat():
            return HeartbeatResponse(error)
        case LeaveGroup():
            left = tuple(
                LeftMember(member.member_id, member.group_instance_id, error) for member in request.members
            )
            return LeaveGroupResponse(Error.NONE, left)
        case OffsetCommit():
            return OffsetCommitResponse(
                tuple(
                    (topic, partition, error)
                    for topic, offsets in request.offsets.items()
                    for partition in offsets
                )
            )
        case OffsetFetch():
            return OffsetFetchResponse(error)
    raise AssertionError(f"a member does not send {type(request).__name__}")


class ScriptedBroker(Broker):
    """Records group requests in ``requests`` as they come, before they are answered."""

    def __init__(self, topics: Mapping[str, int], script: Mapping[On, Reaction]) -> None:
        state = BrokerState(BrokerConfig(auto_create_topics_enable=False), "scripted", Topics())
        for name, partitions in topics.items():
            state.topics.create(name, partitions)
        super().__init__(state, cast("GroupCoordinator", SingleMemberCoordinator(self._take_reaction)))
        self.requests: list[dict[str, Json]] = []
        self.on_request: Callable[[], None] = lambda: None
        self._script = script
        self._counts: dict[str, int] = {}
        self._reaction = Reaction()

    def receive(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        request = read_request(frame)
        if request is None:
            return super().receive(connection, peer, frame, now_ms)
        api = request["api"]
        self._counts[api] = self._counts.get(api, 0) + 1
        self._reaction = self._script.get((api, self._counts[api]), Reaction())
        self.requests.append(request)
        self.on_request()
        for name, partitions in self._reaction.partitions.items():
            self._grow(name, partitions)
        if self._reaction.dropped:
            _ = self.forget(connection, now_ms)
            return BrokerEffects([ConnectionOutput(connection, None, "the script drops the connection")], [])
        if api == "FindCoordinator" and self._reaction.error is not None:
            return BrokerEffects(
                [ConnectionOutput(connection, _no_coordinator(request, frame, self._reaction.error))], []
            )
        return super().receive(connection, peer, frame, now_ms)

    def _take_reaction(self, _request: Request) -> Reaction:
        return self._reaction

    def _grow(self, name: str, partitions: int) -> None:
        topic = self.state.topics.get(name)
        assert topic is not None
        self.state.topics.grow(topic, partitions)


def _no_coordinator(request: dict[str, Json], frame: bytes, error: Error) -> bytes:
    types = response_types(10, request["version"])
    nobody = {"node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": error.name}
    coordinators = tuple(types.make("Coordinator", key=key, **nobody) for key in request["coordinator_keys"])
    response = types.response(coordinators=coordinators)
    correlation_id = read_header(frame, flexible=True).correlation_id
    return framed([response_header(correlation_id, flexible=True), *encoder(types.root)(response)])


class Recording:
    """A scripted broker that listens on the loopback interface while the context lasts."""

    def __init__(self, topics: Mapping[str, int], script: Mapping[On, Reaction]) -> None:
        self.broker = ScriptedBroker(topics, script)
        self.endpoint = Endpoint("", 0)
        self._server = Server(self.broker, lambda *_: None, lambda *_: None)
        self._seen = asyncio.Event()
        self.broker.on_request = self._seen.set

    async def __aenter__(self) -> Recording:
        self.endpoint = await self._server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    @property
    def requests(self) -> Sequence[dict[str, Json]]:
        return self.broker.requests

    async def until(self, api: str, count: int, generation: int | None = None, begun: int = 0) -> None:
        """Wait for the count-th request of an API behind the first ``begun`` requests; with a generation,
        only those that name it count.
        """
        while sum(_matches(request, api, generation) for request in self.requests[begun:]) < count:
            self._seen.clear()
            await self._seen.wait()

    async def until_quiet(self, quiet_ms: int) -> None:
        """Wait until no request has come for so long."""
        while True:
            self._seen.clear()
            try:
                async with asyncio.timeout(quiet_ms / 1000):
                    await self._seen.wait()
            except TimeoutError:
                return


def _matches(request: dict[str, Json], api: str, generation: int | None) -> bool:
    if request["api"] != api:
        return False
    named = request.get("generation_id", request.get("generation_id_or_member_epoch"))
    return generation is None or named == generation
