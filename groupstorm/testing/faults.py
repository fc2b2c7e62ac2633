"""Faults: which request goes wrong, and how. A decision needs only bytes; `Interception` carries it out.

A fault waits for requests of one API, perhaps of one group or one client only, and takes the next ones. A
test that has armed one counts its requests, waits for them, or cancels it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from groupstorm.broker.apis import APIS
from groupstorm.broker.requests import Peer
from groupstorm.broker.shell import Server
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError, did_you_mean
from groupstorm.protocol.codec import CodecError, decoder, request_type
from groupstorm.protocol.headers import peek, read_header
from groupstorm.testing.arguments import listed, number, optional_text, text
from groupstorm.testing.waiting import DEFAULT_TIMEOUT_S, Conditions, WaitFuture, until, wait

#: The longest delay of a request.
MAX_DELAY_MS = 3_600_000
MAX_COUNT = 1_000_000_000


class Seen(NamedTuple):
    """The parts of a request on which a decision depends. ``groups``: those that the request names."""

    api: str
    client_id: str
    groups: tuple[str, ...] = ()


class Delay(NamedTuple):
    """Serve the request later; the connection stays muted meanwhile."""

    delay_ms: int


class Fail(NamedTuple):
    """Answer the request with ``error`` instead of carrying it out."""

    error: Error


class Disconnect(NamedTuple):
    """Close the connection instead of carrying the request out."""


Effect = Delay | Fail | Disconnect


class Fault:
    """An effect on the next ``count`` requests of an API.

    ``api``, ``group``, ``client_id``: None: of all. ``count``: None: on all requests, until it is cancelled.
    """

    def __init__(
        self,
        api: str | None,
        effect: Effect,
        count: int | None,
        group: str | None = None,
        client_id: str | None = None,
    ) -> None:
        """Raises InputError, which names the argument."""
        if api is not None:
            _check_api(api)
        if count is not None:
            number("count", count, 1, MAX_COUNT)
        if isinstance(effect, Delay):
            number("delay_ms", effect.delay_ms, 0, MAX_DELAY_MS)
        optional_text("client_id", client_id)
        if optional_text("group", group) is not None and api is not None and api not in GROUPS_OF:
            raise InputError(
                f"group: {api} requests name no group; those that do are {', '.join(sorted(GROUPS_OF))}"
            )
        self.api = api
        self.effect = effect
        self.count = count
        self.group = group
        self.client_id = client_id
        #: The number of requests that the fault has taken.
        self.hits = 0

    @property
    def left(self) -> int | None:
        """For how many requests the fault still waits; None: until it is cancelled."""
        return None if self.count is None else self.count - self.hits

    def takes(self, request: Seen) -> bool:
        """Whether the fault waits for this request."""
        return (
            self.left != 0
            and self.api in (None, request.api)
            and (self.client_id is None or request.client_id == self.client_id)
            and (self.group is None or self.group in request.groups)
        )

    def __repr__(self) -> str:
        taken = f"{self.hits} taken" if self.count is None else f"{self.hits} of {self.count} taken"
        return f"<Fault {self.effect} on {self.api or 'every API'}, {taken}>"


class Faults:
    """The faults that wait; a request meets one at most, the oldest that fits, lasting ones last."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """The faults that still wait for requests, the oldest first."""
        return tuple(self._waiting)

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def cancel(self, fault: Fault) -> None:
        """The fault waits for no request any more."""
        if fault in self._waiting:
            self._waiting.remove(fault)

    def clear(self) -> None:
        """Cancel all faults."""
        self._waiting.clear()

    def ask_for_groups(self, api: str) -> bool:
        """Whether a decision about this API depends on the request's groups."""
        return api in GROUPS_OF and any(
            fault.group is not None and fault.api in (None, api) for fault in self._waiting
        )

    def decide(self, request: Seen) -> Effect | None:
        """The effect on this request; None: serve it."""
        for fault in sorted(self._waiting, key=lambda one: one.count is None):
            if fault.takes(request):
                fault.hits += 1
                if fault.left == 0:
                    self._waiting.remove(fault)
                return fault.effect
        return None


class FaultControl(ABC):
    """Carries out the faults of a broker. All of it runs on one event loop."""

    def __init__(self) -> None:
        self.faults = Faults()
        self._conditions = Conditions()

    def wait_for_fault(self, fault: Fault) -> WaitFuture:
        """Is done as soon as the fault has taken all its requests."""
        return self._conditions.when(lambda: fault.left == 0)

    @abstractmethod
    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; gives how many: none if the client has gone already.

        Raises InputError for a client that has never sent a request.
        """

    @abstractmethod
    def pause(self, broker: int | None = None) -> None:
        """See `BrokerUnderTest.pause`. Raises InputError for a broker that is not known."""

    @abstractmethod
    def resume(self, broker: int | None = None) -> None:
        """See `BrokerUnderTest.resume`. Raises InputError for a broker that is not known."""


def check_client(client_id: object, known: Collection[str]) -> None:
    """Raise InputError for a client that is not among those that have sent a request."""
    if optional_text("client_id", client_id) is not None and client_id not in known:
        raise InputError(
            f"client_id: {client_id!r}: no client of that name has sent a request; "
            f"those that have: {listed(known)}"
        )


def error_named(name: str) -> Error:
    """Kafka's error of that name. Raises InputError."""
    if text("error", name) not in Error.__members__ or name == Error.NONE.name:
        known = [one for one in Error.__members__ if one != Error.NONE.name]
        raise InputError(f"error: {name!r}: expected one of Kafka's names{_near(name, known)}")
    return Error[name]


def _check_api(name: str) -> None:
    known = [api.name for api in APIS.values()]
    if text("api", name) not in known:
        raise InputError(f"api: {name!r}: no API of that name is served{_near(name, known)}")


def _near(name: str, known: list[str]) -> str:
    return did_you_mean(name, known, otherwise=f", for example {known[0]}")


def _group_id(message: Any) -> tuple[str, ...]:
    return () if message.group_id is None else (message.group_id,)


def _group_ids(message: Any) -> tuple[str, ...]:
    return tuple(message.group_ids)


def _fetched(message: Any) -> tuple[str, ...]:
    """Several groups since version 8 (KIP-709)."""
    groups = getattr(message, "groups", None)
    return (message.group_id,) if groups is None else tuple(group.group_id for group in groups)


def _found(message: Any) -> tuple[str, ...]:
    """Several keys since version 4 (KIP-699), which may be transactional ids."""
    if getattr(message, "key_type", 0) != 0:
        return ()
    keys = getattr(message, "coordinator_keys", None)
    return (message.key,) if keys is None else tuple(keys)


#: The APIs whose requests name one group.
_NAME_ONE = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetDelete"),
    *("TxnOffsetCommit", "AddOffsetsToTxn", "ConsumerGroupHeartbeat"),
    *("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "AlterShareGroupOffsets"),
    *("DeleteShareGroupOffsets", "StreamsGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate"),
)

#: By API: the groups that a request (kio's dataclass) names.
GROUPS_OF: Mapping[str, Callable[[Any], tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(_NAME_ONE, _group_id),
        **dict.fromkeys(("ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe"), _group_ids),
        "DescribeShareGroupOffsets": lambda message: tuple(group.group_id for group in message.groups),
        "OffsetFetch": _fetched,
        "FindCoordinator": _found,
        "DescribeGroups": lambda message: tuple(message.groups),
        "DeleteGroups": lambda message: tuple(message.groups_names),
    }
)


def read_seen(frame: bytes, faults: Faults) -> Seen | None:
    """None for an API or a version that the emulator does not serve. Raises CodecError."""
    api_key, version = peek(frame)
    api = APIS.get(api_key)
    if api is None or not api.min_version <= version <= api.max_version:
        return None
    message_type = request_type(api_key, version)
    header = read_header(frame, message_type.__flexible__)
    if not faults.ask_for_groups(api.name):
        return Seen(api.name, header.client_id)
    message, _ = decoder(message_type)(frame, header.body_at)
    return Seen(api.name, header.client_id, GROUPS_OF[api.name](message))


class FaultTimeout(AssertionError):
    """The requests for which a fault waits did not come in time."""


class ArmedFault:
    """A fault that waits for requests. The end of ``with`` or ``async with`` cancels it."""

    def __init__(self, fault: Fault, waiting: Callable[[], WaitFuture], cancel: Callable[[], object]) -> None:
        """``waiting`` gives what is done as soon as the fault is used up. Both are called on the test's
        thread."""
        self._fault = fault
        self._waiting = waiting
        self._cancel = cancel

    @property
    def hits(self) -> int:
        """The number of requests that the fault has taken."""
        return self._fault.hits

    async def used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until the fault has taken all its requests. Raises FaultTimeout."""
        await until(self._waiting(), timeout_s, self._make_timeout)

    def wait_used_up(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """`used_up` for tests that are not async."""
        wait(self._waiting(), timeout_s, self._make_timeout)

    def cancel(self) -> None:
        """Take no further requests."""
        self._cancel()

    def _make_timeout(self, timeout_s: float) -> FaultTimeout:
        return FaultTimeout(f"after {timeout_s:g} s: {self._fault!r}: the requests did not come")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_problem: object) -> None:
        self.cancel()

    def __repr__(self) -> str:
        return repr(self._fault)


#: Behind API key, version and correlation id of a request.
_CLIENT_ID_AT = 8
#: The number of client ids that are remembered, the first ones.
CLIENT_IDS_KEPT = 10_000


class Interception:
    """A server's `intercept`. It calls ``on_hit`` when a fault has taken a request."""

    def __init__(self, server: Server, faults: Faults, on_hit: Callable[[], None]) -> None:
        self._server = server
        self._faults = faults
        self._on_hit = on_hit
        #: The client ids of all requests so far.
        self.client_ids: set[str] = set()
        #: By connection: its last client id, as it is in a request, with its length.
        self._seen: dict[int, bytes] = {}

    def __call__(self, number: int, peer: Peer, frame: bytes) -> bool:
        """Whether a fault has taken the request. The broker refuses a request that cannot be read."""
        if not self._faults.waiting and frame.startswith(self._seen.get(number, b"-"), _CLIENT_ID_AT):
            return False  # as with the last request of the connection
        try:
            seen = read_seen(frame, self._faults)
        except CodecError:
            return False
        if seen is None:
            return False
        connection = self._server.connections.get(number)
        if connection is not None:
            connection.client_id = seen.client_id
            self._note(number, seen.client_id)
            if len(self.client_ids) < CLIENT_IDS_KEPT:
                self.client_ids.add(seen.client_id)
        effect = self._faults.decide(seen)
        match effect:
            case None:
                return False
            case Delay(delay_ms):
                loop = asyncio.get_running_loop()
                loop.call_later(delay_ms / 1000, self._serve_late, number, peer, frame)
            case Fail(error):
                self._refuse(number, peer, frame, error)
            case Disconnect() if connection is not None:
                connection.close(f"a fault: the connection ends at a {seen.api} request")
        self._on_hit()
        return True

    def _note(self, number: int, client_id: str) -> None:
        encoded = client_id.encode()
        if len(self._seen) >= CLIENT_IDS_KEPT:
            self._seen.clear()
        self._seen[number] = len(encoded).to_bytes(2, "big") + encoded

    def _refuse(self, number: int, peer: Peer, frame: bytes, error: Error) -> None:
        self._server.apply(lambda broker, now_ms: broker.refuse(number, peer, frame, error, now_ms))

    def _serve_late(self, number: int, peer: Peer, frame: bytes) -> None:
        if number in self._server.connections:
            self._server.serve(number, peer, frame)
            self._server.arm()
