"""A broker without sockets: frames and `now` in, answers and events out.

`receive`, `next_deadline` and `fire` are its whole surface, as they are the coordinator's: the
asyncio shell and the tests drive it in the same way. Each connection has at most one request here at a
time, so that answers leave in the order of the requests and a parked JoinGroup mutes its connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from groupstorm.coordinator.effects import Effects
from groupstorm.coordinator.events import Event
from groupstorm.coordinator.messages import Request
from groupstorm.coordinator.server.apis import APIS
from groupstorm.coordinator.server.apis.api import (
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
from groupstorm.coordinator.server.apis.key_18_api_versions import KEY as API_VERSIONS
from groupstorm.coordinator.server.apis.key_18_api_versions import unsupported_version
from groupstorm.coordinator.server.codec import (
    CodecError,
    ResponseTypes,
    decoder,
    encoder,
    request_type,
    response_types,
)
from groupstorm.coordinator.server.config import Endpoint
from groupstorm.coordinator.server.delayed_fetches import DelayedFetches
from groupstorm.coordinator.server.framing import frame as framed
from groupstorm.coordinator.server.headers import Header, peek, read_header, response_header

_FIRST_FLEXIBLE_API_VERSIONS = 3


class Coordinator(Protocol):
    """What the broker needs of `groupstorm.coordinator.GroupCoordinator`."""

    def handle(self, request: Request, now_ms: int, token: Any, /) -> Effects: ...

    def next_deadline(self) -> int | None: ...

    def fire(self, now_ms: int, /) -> Effects: ...


class Peer(NamedTuple):
    """Who is at the other end. ``host`` as Java prints an address, ``reached_at``: our end, as it sees it."""

    host: str
    reached_at: Endpoint


class Answer(NamedTuple):
    """What to do with a connection: send ``payload`` if there is one, take its next request, or close it."""

    connection: int
    payload: bytes | None
    close: str | None = None
    """Why the connection is closed; None: it stays."""


class Step(NamedTuple):
    """What one call brought about. ``records`` of the coordinator are not kept: nothing is reloaded."""

    answers: list[Answer]
    events: list[Event]


class _Token(NamedTuple):
    """Which question of which connection's request an answer of the coordinator belongs to."""

    connection: int
    question: int


@dataclass(slots=True)
class _InFlight:
    """The request that a connection waits for."""

    correlation_id: int
    types: ResponseTypes
    asked: AskCoordinator | None = None
    missing: int = 0
    replies: list[Any] | None = None


class Broker:
    """One node that leads every partition and coordinates every group."""

    def __init__(self, state: BrokerState, coordinator: Coordinator) -> None:
        self.state = state
        self._coordinator = coordinator
        self._in_flight: dict[int, _InFlight] = {}
        self._fetches = DelayedFetches()

    def receive(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> Step:
        """Serve one frame of a connection that has no request in flight.

        What cannot be understood closes the connection, as in Kafka; an unknown version of ApiVersions
        is answered. Nothing that a client sends raises.
        """
        step = Step([], [])
        try:
            outcome = self._dispatch(connection, peer, frame, now_ms)
            self._carry_out(connection, outcome, now_ms, step)
        except CodecError as problem:
            self.forget(connection)
            step.answers.append(Answer(connection, None, str(problem)))
        self._wake_fetches(step)
        return step

    def next_deadline(self) -> int | None:
        """When `fire` is due, in the milliseconds of `now_ms`; None: not before the next frame."""
        deadlines = (self._coordinator.next_deadline(), self._fetches.next_deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def fire(self, now_ms: int) -> Step:
        """Carry out every timer that is due."""
        step = Step([], [])
        self._take_effects(self._coordinator.fire(now_ms), step)
        for connection, response in self._fetches.expire(now_ms):
            self._answer(connection, response, step)
        return step

    def forget(self, connection: int) -> None:
        """The connection is gone. Groups are not told: Kafka's coordinator sees no connections either."""
        self._in_flight.pop(connection, None)
        self._fetches.forget(connection)

    def _dispatch(self, connection: int, peer: Peer, frame: bytes, now_ms: int) -> Outcome:
        api_key, version = peek(frame)
        api = APIS.get(api_key)
        if api is None:
            raise CodecError(f"API key {api_key} is not served")
        if not api.min_version <= version <= api.max_version:
            return self._unsupported(connection, api, version, frame)
        message_type = request_type(api_key, version)
        header = read_header(frame, message_type.__flexible__)
        message, _ = decoder(message_type)(frame, header.body_at)
        types = response_types(api_key, version)
        self._in_flight[connection] = _InFlight(header.correlation_id, types)
        call = self._call(header, peer, message, types, now_ms)
        return api.handle(self.state, call)

    def _call(self, header: Header, peer: Peer, message: Any, types: ResponseTypes, now_ms: int) -> Call:
        reached_at = self.state.config.advertised_listeners or peer.reached_at
        return Call(header.version, message, types, header.client_id, peer.host, reached_at, now_ms)

    def _unsupported(self, connection: int, api: Api, version: int, frame: bytes) -> Outcome:
        if api.key != API_VERSIONS:
            versions = f"from version {api.min_version} to {api.max_version}"
            raise CodecError(f"{api.name} is served {versions}, not {version}")
        header = read_header(frame, flexible=version >= _FIRST_FLEXIBLE_API_VERSIONS)
        types = response_types(API_VERSIONS, 0)
        self._in_flight[connection] = _InFlight(header.correlation_id, types)
        return Done(unsupported_version(types))

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
            effects = self._coordinator.handle(request, now_ms, _Token(connection, question))
            self._take_effects(effects, step)

    def _take_effects(self, effects: Effects, step: Step) -> None:
        step.events.extend(effects.events)
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
