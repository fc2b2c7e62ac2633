"""Requests between their bytes and their answers: decoded, carried out in turns, or waiting for records."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from groupstorm.broker.apis.api import Api, Done, Encoded, KioMessage, Outcome, Wait
from groupstorm.broker.authorization import ANONYMOUS
from groupstorm.broker.changes import Change
from groupstorm.broker.log.partition import PartitionLog
from groupstorm.protocol.codec import (
    CodecError,
    ResponseTypes,
    decode_in_turns,
    decoder,
    encode_in_turns,
    release_in_turns,
    request_type,
    response_types,
)
from groupstorm.protocol.codec.plain_values import milliseconds
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import read_header
from groupstorm.trace.events.coordinator import Event
from groupstorm.turns import Turns


class Peer(NamedTuple):
    """The client of a connection. ``host``: its address as Java prints it; ``reached_at``: the broker's
    address as the client sees it; ``node``: the id of that broker, None: the first; ``principal``: who it has
    proved to be."""

    host: str
    reached_at: Endpoint
    node: int | None = None
    principal: str = ANONYMOUS


class ConnectionOutput(NamedTuple):
    """The end of a connection's request: send ``payload`` if there is one, then serve the next request or
    close the connection."""

    connection: int
    payload: bytes | None
    close: str | None = None
    """Why the connection is closed; None: it stays open."""
    mute_ms: int = 0
    """The time for which no further request of the connection is served (KIP-219)."""


class BrokerEffects(NamedTuple):
    """The effects of one call of the broker. A journal must hold ``changes`` before a client gets its
    output."""

    outputs: list[ConnectionOutput]
    events: list[Event]
    changes: Sequence[Change] = ()


_LONGEST_KEPT = 512
#: Longer requests are decoded in turns. An item takes at least two bytes.
_LONGEST_AT_ONCE = 8_192
_KEPT = 1_000
#: Where the correlation id begins and ends.
_ID_AT, _ID_END = 4, 8


class Decoded(NamedTuple):
    """``types``: those of the response."""

    types: ResponseTypes
    correlation_id: int
    client_id: str
    message: Any


@cache
def _codecs(
    api_key: int, version: int
) -> tuple[bool, Callable[[bytes, int], tuple[Any, int]], ResponseTypes]:
    """Whether the version is a flexible one, the decoder of its requests, and the types of its responses."""
    message_type = request_type(api_key, version)
    return message_type.__flexible__, decoder(message_type), response_types(api_key, version)


class Decoder:
    """Decodes the requests of all connections. Messages are immutable: requests may share one."""

    def __init__(self) -> None:
        self._known: dict[bytes, Decoded] = {}

    def decode(self, api: Api, version: int, frame: bytes) -> Decoded:
        """A request of a version that is served. Raises CodecError."""
        if not api.is_repeated or len(frame) > _LONGEST_KEPT:
            return _decode(api.key, version, frame)
        rest = frame[:_ID_AT] + frame[_ID_END:]
        known = self._known.get(rest)
        if known is not None:
            correlation_id = int.from_bytes(frame[_ID_AT:_ID_END], "big", signed=True)
            return Decoded(known.types, correlation_id, known.client_id, known.message)
        if len(self._known) >= _KEPT:
            self._known.clear()
        decoded = self._known[rest] = _decode(api.key, version, frame)
        return decoded

    @staticmethod
    def is_long(frame: bytes) -> bool:
        """Whether to decode this request with `in_turns`."""
        return len(frame) > _LONGEST_AT_ONCE

    @staticmethod
    def in_turns(api_key: int, version: int, frame: bytes) -> Turns[Decoded]:
        """Decode a long request in turns, to what `decode` gives. Raises CodecError."""
        flexible, _, types = _codecs(api_key, version)
        header = read_header(frame, flexible)
        message, _ = yield from decode_in_turns(request_type(api_key, version), frame, header.body_at)
        return Decoded(types, header.correlation_id, header.client_id, message)


def _decode(api_key: int, version: int, frame: bytes) -> Decoded:
    flexible, decode, types = _codecs(api_key, version)
    header = read_header(frame, flexible)
    message, _ = decode(frame, header.body_at)
    return Decoded(types, header.correlation_id, header.client_id, message)


#: The work of a turn: some milliseconds.
WORK_PER_TURN = 300


class Turn(NamedTuple):
    """The end of a turn. The last turn of a request has its outcome, or the reason to close the connection.

    ``connection``: whose request it is, None: nobody waits for it.
    """

    connection: int | None
    outcome: Outcome | None = None
    problem: CodecError | None = None


class _Work:
    """The turns that are left."""

    __slots__ = ("connection", "is_long", "turns")

    def __init__(self, connection: int | None) -> None:
        self.connection = connection
        #: It has taken more than a turn.
        self.is_long = False
        self.turns: Turns[Outcome | None]


class Unfinished:
    """The unfinished requests, in the order in which their turns come."""

    def __init__(self) -> None:
        self._waiting: deque[_Work] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, connection: int | None, turns: Turns[Outcome | None]) -> Turn:
        """Carry out the first turn of a request."""
        work = _Work(connection)
        work.turns = self._with_response(work, turns)
        return self._turn(work)

    def next_turn(self) -> Turn:
        return self._turn(self._waiting.popleft())

    def release(self, message: KioMessage) -> None:
        """Nobody uses this long message any more."""
        work = _Work(None)
        work.turns = release_in_turns(message)
        self._waiting.append(work)

    def _turn(self, work: _Work) -> Turn:
        left = WORK_PER_TURN
        try:
            while left > 0:
                left -= next(work.turns)
        except StopIteration as end:
            return Turn(work.connection, end.value)
        except CodecError as problem:
            return Turn(work.connection, problem=problem)
        work.is_long = True
        self._waiting.append(work)
        return Turn(work.connection)

    def _with_response(self, work: _Work, turns: Turns[Outcome | None]) -> Turns[Outcome | None]:
        """The outcome of the turns. The response to a long request is long, too: it is encoded in turns."""
        outcome = yield from turns
        if not work.is_long or not isinstance(outcome, Done):
            return outcome
        body = yield from encode_in_turns(outcome.response)
        self.release(outcome.response)
        return Encoded(body, mute_ms(outcome.response))


def mute_ms(response: KioMessage) -> int:
    """For how long the client's quota mutes its connection."""
    throttle = getattr(response, "throttle_time", None)
    return milliseconds(throttle) if throttle else 0


#: Deadlines of answered fetches that are kept beyond one for each waiting fetch.
_OUTDATED_KEPT = 1_000


class FetchAnswer(NamedTuple):
    connection: int
    response: Done | Encoded | Turns[Done]


class DelayedFetches:
    """At most one fetch per connection: connections are served one request at a time."""

    def __init__(self) -> None:
        self._waiting: dict[int, Wait] = {}
        self._by_log: defaultdict[PartitionLog, set[int]] = defaultdict(set)
        self._deadlines: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, connection: int, wait: Wait) -> None:
        self._waiting[connection] = wait
        for log in wait.logs:
            self._by_log[log].add(connection)
        heappush(self._deadlines, (wait.deadline_ms, connection))
        if len(self._deadlines) > 2 * len(self._waiting) + _OUTDATED_KEPT:
            # a client may ask to wait for 24 days, be answered at once and ask again
            self._deadlines = list({one for one in self._deadlines if self._is_current(*one)})
            heapify(self._deadlines)

    def forget(self, connection: int) -> None:
        """Forget the fetch of a closed connection."""
        wait = self._waiting.pop(connection, None)
        for log in wait.logs if wait is not None else ():
            watchers = self._by_log[log]
            watchers.discard(connection)
            if not watchers:
                del self._by_log[log]

    def appended(self, logs: Iterable[PartitionLog]) -> list[FetchAnswer]:
        """Take the fetches that have enough now that these logs have grown, in the order of their arrival."""
        watching = {connection for log in logs for connection in self._by_log.get(log, ())}
        ready = sorted(connection for connection in watching if self._waiting[connection].is_ready())
        return [self._finish(connection) for connection in ready]

    def finish_all(self) -> list[FetchAnswer]:
        """Take all fetches."""
        return [self._finish(connection) for connection in sorted(self._waiting)]

    def expire(self, now_ms: int) -> list[FetchAnswer]:
        """Take the fetches whose deadline has passed."""
        answers = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            deadline_ms, connection = heappop(self._deadlines)
            if self._is_current(deadline_ms, connection):
                answers.append(self._finish(connection))
        return answers

    def next_deadline(self) -> int | None:
        while self._deadlines and not self._is_current(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _is_current(self, deadline_ms: int, connection: int) -> bool:
        """Whether the fetch of this entry still waits; the entry may be of an earlier fetch of its
        connection."""
        wait = self._waiting.get(connection)
        return wait is not None and wait.deadline_ms == deadline_ms

    def _finish(self, connection: int) -> FetchAnswer:
        wait = self._waiting[connection]
        self.forget(connection)
        return FetchAnswer(connection, wait.finish())
