"""A broker without sockets: frames and `now` in, answers and events out.

`receive`, `next_deadline` and `fire` are its whole surface, as they are the coordinator's: the
asyncio shell and the tests drive it in the same way. Each connection has at most one request here at a
time, so that answers leave in the order of the requests and a parked JoinGroup mutes its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.error_responses import error_response
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.messages import JoinGroup, ListGroups, OffsetCommit, Request, TxnOffsetCommit
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.server.apis import apis_of
from groupstorm.coordinator.server.apis.api import (
    OFFSETS_TOPIC,
    Api,
    AskCoordinator,
    BrokerState,
    Call,
    Done,
    Encoded,
    NoAnswer,
    Outcome,
    Wait,
)
from groupstorm.coordinator.server.apis.error_answers import error_answer
from groupstorm.coordinator.server.apis.key_18_api_versions import KEY as API_VERSIONS
from groupstorm.coordinator.server.apis.key_18_api_versions import unsupported_version
from groupstorm.coordinator.server.changes import Change
from groupstorm.coordinator.server.codec import (
    CodecError,
    ResponseTypes,
    decoder,
    encoder,
    request_type,
    response_types,
)
from groupstorm.coordinator.server.config import INT32_MAX, Endpoint
from groupstorm.coordinator.server.delayed_fetches import DelayedFetches
from groupstorm.coordinator.server.framing import frame as framed
from groupstorm.coordinator.server.headers import Header, peek, read_header, response_header
from groupstorm.coordinator.server.releases import NEWEST
from groupstorm.coordinator.server.restoring import changed_transaction, snapshot

_FIRST_FLEXIBLE_API_VERSIONS = 3

#: What becomes of one request.
_Handle = Callable[[Api, Call], Outcome]


class Coordinator(Protocol):
    """What the broker needs of `groupstorm.coordinator.GroupCoordinator`."""

    def handle(self, request: Request, now_ms: int, token: Any, /) -> Effects: ...

    def on_topics_deleted(self, topics: Sequence[str], now_ms: int, /) -> Effects: ...

    def end_transaction(self, producer_id: int, is_commit: bool, now_ms: int, /) -> Effects: ...

    def move(self, groups: Iterable[str], now_ms: int, /) -> Effects: ...

    def unload(self, now_ms: int, /) -> Effects: ...

    def expire_session(self, group: str, member_id: str, now_ms: int, /) -> Effects: ...

    def snapshot(self) -> list[Record]: ...

    @property
    def groups(self) -> Sequence[str]: ...

    def next_deadline(self) -> int | None: ...

    def fire(self, now_ms: int, /) -> Effects: ...


class Peer(NamedTuple):
    """Who is at the other end. ``host`` as Java prints an address, ``reached_at``: our end, as it sees it;
    ``node``: which of the brokers that is, None: the first."""

    host: str
    reached_at: Endpoint
    node: int | None = None


class Answer(NamedTuple):
    """What to do with a connection: send ``payload`` if there is one, take its next request, or close it."""

    connection: int
    payload: bytes | None
    close: str | None = None
    """Why the connection is closed; None: it stays."""


class Step(NamedTuple):
    """What one call brought about. ``changes``: what a journal must hold before anybody is told."""

    answers: list[Answer]
    events: list[Event]
    changes: Sequence[Change] = ()


class _Token(NamedTuple):
    """Which question of which connection's request an answer of the coordinator belongs to."""

    connection: int
    question: int


@dataclass(slots=True)
class _InFlight:
    """The request that a connection waits for."""

    correlation_id: int
    types: ResponseTypes
    node: int
    asked: AskCoordinator | None = None
    missing: int = 0
    replies: list[Any] | None = None


@cache
def _codecs(
    api_key: int, version: int
) -> tuple[bool, Callable[[bytes, int], tuple[Any, int]], ResponseTypes]:
    """Whether the version is a flexible one, what reads its requests and what its responses consist of."""
    message_type = request_type(api_key, version)
    return message_type.__flexible__, decoder(message_type), response_types(api_key, version)


class Broker:
    """The brokers of this process; with one node it leads every partition and coordinates every group.

    ``release``: which Kafka's versions are advertised (`releases.RELEASES`).
    """

    def __init__(
        self,
        state: BrokerState,
        coordinator: Coordinator,
        release: str = NEWEST,
        loaded: Sequence[Event] = (),
    ) -> None:
        """``loaded``: what the coordinator did before this, to be told with the first step."""
        self.state = state
        self.loaded = loaded
        self._apis = apis_of(release)
        self._retention_check_ms: int | None = None
        self._coordinator = coordinator
        self._in_flight: dict[int, _InFlight] = {}
        self._fetches = DelayedFetches()

    def receive(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> Step:
        """Serve one frame of a connection that has no request in flight.

        What cannot be understood closes the connection, as in Kafka; an unknown version of ApiVersions
        is answered. Nothing that a client sends raises.
        """
        return self._serve(connection, peer, frame, now_ms, self._do)

    def _do(self, api: Api, call: Call) -> Outcome:
        return api.handle(self.state, call)

    def refuse(self, connection: int, peer: Peer, frame: bytes, error: Error, now_ms: int) -> Step:
        """`receive`, but what the frame asks for is not carried out: it is answered with ``error``."""

        def answer(api: Api, call: Call) -> Outcome:
            response = error_answer(api, self.state, call, error)
            return NoAnswer() if response is None else Done(response)

        return self._serve(connection, peer, frame, now_ms, answer)

    def expire_session(self, group: str, member_id: str, now_ms: int) -> Step:
        """See `GroupCoordinator.expire_session`."""
        step = Step([], [])
        self._take_effects(self._coordinator.expire_session(group, member_id, now_ms), step)
        return self._with_changes(step)

    def _serve(self, connection: int, peer: Peer, frame: bytes, now_ms: int, handle: _Handle) -> Step:
        step = Step([], [])
        try:
            outcome = self._dispatch(connection, peer, frame, now_ms, handle)
            self._follow_up(now_ms, step)
            self._carry_out(connection, outcome, now_ms, step)
        except CodecError as problem:
            self.forget(connection)
            step.answers.append(Answer(connection, None, str(problem)))
        self._wake_fetches(step)
        return self._with_changes(step)

    @property
    def coordinator(self) -> Coordinator:
        """Who decides about groups, to look at."""
        return self._coordinator

    def next_deadline(self) -> int | None:
        """When `fire` is due, in the milliseconds of `now_ms`; None: not before the next frame."""
        deadlines = (
            self._coordinator.next_deadline(),
            self._fetches.next_deadline(),
            self.state.transactions.next_deadline(),
            self._retention_check_ms,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def fire(self, now_ms: int) -> Step:
        """Carry out every timer that is due."""
        step = Step([], [])
        self._take_effects(self._coordinator.fire(now_ms), step)
        self.state.transactions.fire(now_ms)
        self._check_retention(now_ms)
        self._follow_up(now_ms, step)
        self._wake_fetches(step)
        for connection, response in self._fetches.expire(now_ms):
            self._answer(connection, response, step)
        return self._with_changes(step)

    def forget(self, connection: int) -> None:
        """The connection is gone. Groups are not told: Kafka's coordinator sees no connections either."""
        self._in_flight.pop(connection, None)
        self._fetches.forget(connection)

    def move_coordinator(self, group: str, node: int | None, now_ms: int) -> Step:
        """Another broker, the next one unless one is named, takes over the partition of the offsets topic
        that this group is in: all groups of that partition, as when its leader changes in Kafka.

        Raises ValueError for a broker that there is not.
        """
        self.state.cluster.move_coordinator(group, node)
        partition_of = self.state.cluster.partition_of
        moved = [one for one in self._coordinator.groups if partition_of(one) == partition_of(group)]
        step = Step([], [])
        self._take_effects(self._coordinator.move(moved, now_ms), step)
        return self._with_changes(step)

    def move_every_coordinator(self, now_ms: int) -> list[Step]:
        """The next broker takes over each partition of the offsets topic that has groups."""
        partition_of = self.state.cluster.partition_of
        one_each = {partition_of(group): group for group in self._coordinator.groups}
        return [self.move_coordinator(group, None, now_ms) for group in one_each.values()]

    def snapshot(self) -> Iterable[Change]:
        """The shortest journal of the present state."""
        return snapshot(self.state, self._coordinator.snapshot())

    def _with_changes(self, step: Step) -> Step:
        if not self.state.changes and not self.state.transactions.changed:
            return step
        changed, self.state.transactions.changed = self.state.transactions.changed, {}
        self.state.changes += [changed_transaction(one) for one in changed.values()]
        changes, self.state.changes = self.state.changes, []
        return step._replace(changes=changes)

    def stop(self, now_ms: int) -> Step:
        """Answer everything that is parked: groups with NOT_COORDINATOR, fetches with what there is."""
        step = Step([], [])
        self._take_effects(self._coordinator.unload(now_ms), step)
        for connection, response in self._fetches.finish_all():
            self._answer(connection, response, step)
        return step

    def _follow_up(self, now_ms: int, step: Step) -> None:
        """What a request decided beyond its answer: ends of transactions, offsets of deleted topics."""
        for marker in self.state.write_markers(now_ms):
            if any(topic == OFFSETS_TOPIC for topic, _ in marker.partitions):
                effects = self._coordinator.end_transaction(marker.producer_id, marker.is_commit, now_ms)
                self._take_effects(effects, step)
        deleted, self.state.deleted_topics = self.state.deleted_topics, []
        if deleted:
            self._take_effects(self._coordinator.on_topics_deleted(deleted, now_ms), step)

    def _check_retention(self, now_ms: int) -> None:
        """retention.ms, every log.retention.check.interval.ms while there is a topic."""
        if self._retention_check_ms is None or now_ms < self._retention_check_ms:
            return
        self._retention_check_ms = now_ms + self.state.config.log_retention_check_interval_ms
        self.state.expire_records(now_ms)

    def _dispatch(self, connection: int, peer: Peer, frame: bytes, now_ms: int, handle: _Handle) -> Outcome:
        api_key, version = peek(frame)
        if self._retention_check_ms is None:
            self._retention_check_ms = now_ms + self.state.config.log_retention_check_interval_ms
        api = self._apis.get(api_key)
        if api is None:
            raise CodecError(f"API key {api_key} is not served")
        if not api.min_version <= version <= api.max_version:
            return self._unsupported(connection, peer, api, version, frame)
        flexible, decode, types = _codecs(api_key, version)
        header = read_header(frame, flexible)
        message, _ = decode(frame, header.body_at)
        self._in_flight[connection] = _InFlight(header.correlation_id, types, self._node(peer))
        return handle(api, self._call(header, peer, message, types, now_ms))

    def _call(self, header: Header, peer: Peer, message: Any, types: ResponseTypes, now_ms: int) -> Call:
        who = (header.client_id, peer.host, peer.reached_at)
        return Call(header.version, message, types, *who, now_ms, self._node(peer))

    def _node(self, peer: Peer) -> int:
        return self.state.cluster.nodes[0] if peer.node is None else peer.node

    def _unsupported(self, connection: int, peer: Peer, api: Api, version: int, frame: bytes) -> Outcome:
        if api.key != API_VERSIONS:
            versions = f"from version {api.min_version} to {api.max_version}"
            raise CodecError(f"{api.name} is served {versions}, not {version}")
        header = read_header(frame, flexible=version >= _FIRST_FLEXIBLE_API_VERSIONS)
        types = response_types(API_VERSIONS, 0)
        self._in_flight[connection] = _InFlight(header.correlation_id, types, self._node(peer))
        return Done(unsupported_version(types, api.max_version))

    def _carry_out(self, connection: int, outcome: Outcome, now_ms: int, step: Step) -> None:
        match outcome:
            case Done(response):
                self._answer(connection, response, step)
            case Encoded(body):
                self._send(connection, body, step)
            case NoAnswer(close):
                self.forget(connection)
                step.answers.append(Answer(connection, None, close))
            case Wait():
                self._fetches.park(connection, outcome)
            case AskCoordinator():
                self._ask(connection, outcome, now_ms, step)

    def _ask(self, connection: int, asked: AskCoordinator, now_ms: int, step: Step) -> None:
        in_flight = self._in_flight[connection]
        in_flight.asked = asked
        in_flight.missing = len(asked.requests)
        in_flight.replies = [None] * in_flight.missing
        if not asked.requests:
            self._answer(connection, asked.finish(()), step)
        for question, request in enumerate(asked.requests):
            token = _Token(connection, question)
            error = self._refusal(request, in_flight.node)
            if error is not Error.NONE and not isinstance(request, ListGroups):
                self._take_reply(token, error_response(request, error), step)
                continue
            self._take_effects(self._coordinator.handle(request, now_ms, token), step)

    def _refusal(self, request: Request, node: int) -> Error:
        """Why this broker does not ask the coordinator: the group is another broker's, or one too many."""
        if isinstance(request, ListGroups):
            return Error.NONE
        if self.state.cluster.coordinator(request.group) != node:
            return Error.NOT_COORDINATOR
        most = self.state.config.groupstorm_max_groups
        if most < INT32_MAX and isinstance(request, JoinGroup | OffsetCommit | TxnOffsetCommit):
            groups = self._coordinator.groups
            if len(groups) >= most and request.group not in groups:
                return Error.POLICY_VIOLATION
        return Error.NONE

    def _take_effects(self, effects: Effects, step: Step) -> None:
        step.events.extend(effects.events)
        self.state.changes += effects.records
        for token, response in effects.replies:
            if isinstance(token, _Token):
                self._take_reply(token, response, step)

    def _take_reply(self, token: _Token, response: Any, step: Step) -> None:
        in_flight = self._in_flight.get(token.connection)
        if in_flight is None or in_flight.asked is None or in_flight.replies is None:
            return  # the client has gone meanwhile
        in_flight.replies[token.question] = response
        in_flight.missing -= 1
        if in_flight.missing == 0:
            self._answer(token.connection, in_flight.asked.finish(in_flight.replies), step)

    def _wake_fetches(self, step: Step) -> None:
        if self.state.appended:
            appended, self.state.appended = self.state.appended, []
            for connection, response in self._fetches.appended(appended):
                self._answer(connection, response, step)

    def _answer(self, connection: int, response: Any, step: Step) -> None:
        try:
            body: Sequence[bytes] = encoder(self._in_flight[connection].types.root)(response)
        except CodecError as problem:
            # e.g. a member id made of a client id of 32,767 bytes: Kafka closes the connection too
            self.forget(connection)
            step.answers.append(Answer(connection, None, str(problem)))
            return
        self._send(connection, body, step)

    def _send(self, connection: int, body: Iterable[bytes], step: Step) -> None:
        in_flight = self._in_flight.pop(connection)
        header_version = in_flight.types.root.__header_schema__.__version__
        header = response_header(in_flight.correlation_id, flexible=header_version > 0)
        step.answers.append(Answer(connection, framed([header, *body])))
