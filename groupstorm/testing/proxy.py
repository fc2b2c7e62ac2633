"""The proxy: a listener per broker, a connection to the broker per connection of a client.

As a broker does, it serves one request of a connection after the other. All of it runs on one event loop.
Where a response names brokers, clients are told the proxy's addresses.
"""

from __future__ import annotations

import asyncio
import dataclasses
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from groupstorm.broker.apis import APIS
from groupstorm.broker.assembly import make_broker
from groupstorm.broker.requests import Peer
from groupstorm.clients.wire.connection import MAX_RESPONSE_BYTES, body_type
from groupstorm.coordinator.errors import Error
from groupstorm.problems import InputError
from groupstorm.protocol.codec import CodecError, decoder, encoder, request_type, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import frame, peek, read_header
from groupstorm.testing.faults import Delay, Disconnect, Fail, Fault, Faults, check_client, read_seen
from groupstorm.testing.waiting import Conditions, WaitFuture

_HOST = "127.0.0.1"
_LENGTH = struct.Struct(">i")
#: Of a bootstrap address, until a response has named the broker there.
_UNKNOWN_NODE = -1


class FaultProxy:
    """Stands in front of the brokers of one cluster, from `start` to `stop`. Clients connect to
    ``bootstrap``, and reach each broker through a listener of its own."""

    def __init__(self, brokers: Sequence[Endpoint]) -> None:
        """``brokers``: the cluster's bootstrap addresses."""
        self.faults = Faults()
        #: Where clients connect.
        self.bootstrap: tuple[Endpoint, ...] = ()
        self._brokers = brokers
        self._listeners: dict[Endpoint, _Listener] = {}
        self._connections: set[_Connection] = set()
        self._client_ids: set[str] = set()
        self._all_are_paused = False
        self._conditions = Conditions()
        #: Builds responses to requests that are not carried out; it serves nobody.
        self._refusing = make_broker({}, {})

    async def start(self) -> None:
        self.bootstrap = tuple([await self._reached_at(_Node(_UNKNOWN_NODE, one)) for one in self._brokers])

    async def stop(self) -> None:
        for listener in self._listeners.values():
            listener.server.close()
        serving = [connection.task for connection in self._connections]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    # faults

    def wait_for_fault(self, fault: Fault) -> WaitFuture:
        """Is done as soon as the fault has taken all its requests."""
        return self._conditions.when(lambda: fault.left == 0)

    def drop_connections(self, client_id: str | None = None) -> int:
        """Close the connections of a client, or all; gives how many. Raises InputError for a client that has
        never sent a request."""
        check_client(client_id, self._client_ids)
        dropped = [
            one for one in self._connections if client_id in (None, one.client_id) and not one.is_aborted
        ]
        for connection in dropped:
            connection.abort()
        return len(dropped)

    def pause(self, broker: int | None = None) -> None:
        """Hand on no requests to that broker, or to any, and no responses."""
        for listener in self._of(broker):
            listener.goes_on.clear()
        self._all_are_paused |= broker is None

    def resume(self, broker: int | None = None) -> None:
        for listener in self._of(broker):
            listener.goes_on.set()
        self._all_are_paused &= broker is not None

    def _of(self, broker: int | None) -> list[_Listener]:
        """Raises InputError for a broker that no response has named."""
        if broker is None:
            return list(self._listeners.values())
        found = [one for one in self._listeners.values() if one.node_id == broker]
        if not found:
            named = sorted({one.node_id for one in self._listeners.values()} - {_UNKNOWN_NODE})
            raise InputError(
                f"broker: {broker!r}: expected one that a response has named to a client:"
                f" {', '.join(map(str, named)) or 'so far none'}"
            )
        return found

    # for connections

    async def told(self, request: bytes, response: bytes) -> bytes:
        """The response with our addresses. Raises CodecError."""
        answered = _Answered(request, response)
        places = {node.endpoint: await self._reached_at(node) for node in answered.nodes()}
        return answered.bytes(places.__getitem__)

    async def _reached_at(self, node: _Node) -> Endpoint:
        listener = self._listeners.get(node.endpoint)
        if listener is None:
            listener = self._listeners[node.endpoint] = _Listener(self, node)
            if self._all_are_paused:
                listener.goes_on.clear()
            await listener.start()
        elif node.id != _UNKNOWN_NODE:
            listener.node_id = node.id
        await listener.listens.wait()
        return listener.at

    def refusal(self, connection: int, peer: Peer, request: bytes, error: Error) -> bytes:
        """The response with an error; empty if Kafka sends none."""
        effects = self._refusing.refuse(connection, peer, request, error, time.time_ns() // 1_000_000)
        return b"".join(output.payload or b"" for output in effects.outputs)

    def opened(self, connection: _Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: _Connection) -> None:
        self._connections.discard(connection)

    def asked_by(self, client_id: str) -> None:
        self._client_ids.add(client_id)

    def hit(self) -> None:
        """A fault has taken a request."""
        self._conditions.look_again()


class _Listener:
    """Where clients reach one broker."""

    def __init__(self, proxy: FaultProxy, node: _Node) -> None:
        self.node_id = node.id
        self.broker = node.endpoint
        self.at = Endpoint("", 0)
        self.listens = asyncio.Event()
        #: Is clear while the broker is paused.
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self._proxy = proxy

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, _HOST, 0)
        self.at = Endpoint(_HOST, self.server.sockets[0].getsockname()[1])
        self.listens.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(self._proxy, self, task, reader, writer)
        self._proxy.opened(connection)
        try:
            await connection.serve()
        except* (OSError, EOFError, CodecError):  # one of the two sides has ended it, or is not a client
            pass
        finally:
            connection.abort()
            self._proxy.closed(connection)


class _Connection:
    """One client's connection to one broker."""

    def __init__(
        self,
        proxy: FaultProxy,
        listener: _Listener,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        #: Serves the connection until it ends.
        self.task = task
        self.client_id: str | None = None
        #: Its task ends soon.
        self.is_aborted = False
        self._proxy = proxy
        self._listener = listener
        self._reader = reader
        self._writer = writer
        self._to_broker: asyncio.StreamWriter | None = None
        self._peer = Peer(_HOST, listener.at, None)

    def abort(self) -> None:
        self.is_aborted = True
        self._writer.transport.abort()
        if self._to_broker is not None:
            self._to_broker.transport.abort()

    async def serve(self) -> None:
        """Hand on requests and responses until one side closes its connection."""
        broker = self._listener.broker
        from_broker, self._to_broker = await asyncio.open_connection(broker.host, broker.port)
        responses: asyncio.Queue[bytes] = asyncio.Queue(1)
        async with asyncio.TaskGroup() as tasks:  # the end of either side ends both tasks
            tasks.create_task(_read_frames(from_broker, responses))
            await self._serve_requests(self._to_broker, responses)

    async def _serve_requests(self, to_broker: asyncio.StreamWriter, responses: asyncio.Queue[bytes]) -> None:
        while True:
            request = await _read_frame(self._reader)
            await self._listener.goes_on.wait()
            if await self._is_taken(request):
                continue
            to_broker.write(frame([request]))
            if not _expects_response(request):
                continue
            response = await self._proxy.told(request, await responses.get())
            await self._send(frame([response]))

    async def _is_taken(self, request: bytes) -> bool:
        """Whether a fault has taken the request, so that the broker does not get it."""
        seen = read_seen(request, self._proxy.faults)
        if seen is None:
            return False
        self.client_id = seen.client_id
        self._proxy.asked_by(seen.client_id)
        effect = self._proxy.faults.decide(seen)
        if effect is None:
            return False
        self._proxy.hit()
        match effect:
            case Delay(delay_ms):
                await asyncio.sleep(delay_ms / 1000)
                return False
            case Fail(error):
                await self._send(self._proxy.refusal(id(self), self._peer, request, error))
            case Disconnect():
                self._writer.close()  # the next read ends
        return True

    async def _send(self, response: bytes) -> None:
        await self._listener.goes_on.wait()
        self._writer.write(response)
        with suppress(ConnectionError):  # the next read says so, too
            await self._writer.drain()


async def _read_frames(reader: asyncio.StreamReader, frames: asyncio.Queue[bytes]) -> None:
    """Put each message into the queue. Raises as `_read_frame` does."""
    while True:
        await frames.put(await _read_frame(reader))


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """Without its length. Raises EOFError, OSError, and CodecError for a length that no message has."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if not 0 <= length <= MAX_RESPONSE_BYTES:
        raise CodecError(f"a message of {length} bytes was announced")
    return await reader.readexactly(length)


_PRODUCE = 0
_API_VERSIONS = 18
#: Their responses name brokers: Produce, Fetch (KIP-951), Metadata, FindCoordinator, DescribeCluster,
#: ShareFetch, ShareAcknowledge.
_NAMING_BROKERS = frozenset((0, 1, 3, 10, 60, 78, 79))

#: The address at which clients reach a broker, of the broker's own.
_Replace = Callable[[Endpoint], Endpoint]


class _Node(NamedTuple):
    """A broker that a response names; ``id``: its node id."""

    id: int
    endpoint: Endpoint


class _Answered:
    """The response to one request, read if it names brokers or versions; else its bytes stay as they are."""

    def __init__(self, request: bytes, response: bytes) -> None:
        """Both without their length. Raises CodecError."""
        api_key, version = peek(request)
        self._response = response
        self._message: Any = None
        if api_key != _API_VERSIONS and api_key not in _NAMING_BROKERS:
            return
        if (api := APIS.get(api_key)) is None or version > api.max_version:
            return
        types = response_types(api_key, version)
        _, self._body_at = decoder(types.root.__header_schema__)(response, 0)
        self._root = body_type(api_key, types, response, self._body_at)
        message, _ = decoder(self._root)(response, self._body_at)
        self._message = _with_known_versions(message) if api_key == _API_VERSIONS else message

    def nodes(self) -> Iterator[_Node]:
        """The brokers that the response names."""
        for place in _places(self._message):
            yield _Node(_node_id(place), Endpoint(place.host, place.port))

    def bytes(self, replace: _Replace) -> bytes:
        """The response, without its length, with other addresses."""
        if self._message is None:
            return self._response
        replaced = _replaced(self._message, replace)
        return b"".join((self._response[: self._body_at], *encoder(self._root)(replaced)))


def _expects_response(request: bytes) -> bool:
    """Whether the broker answers the request: not if it is Produce with acks=0. Raises CodecError."""
    api_key, version = peek(request)
    if api_key != _PRODUCE or version > APIS[_PRODUCE].max_version:
        return True
    root = request_type(api_key, version)
    message, _ = decoder(root)(request, read_header(request, root.__flexible__).body_at)
    return bool(message.acks != 0)


def _with_known_versions(message: Any) -> Any:
    """The versions that the broker and we know: of newer ones we could not read a request."""
    rows = []
    for row in message.api_keys:
        known = APIS.get(row.api_key)
        highest = row.max_version if known is None else min(row.max_version, known.max_version)
        if highest >= row.min_version:
            rows.append(dataclasses.replace(row, max_version=highest))
    return dataclasses.replace(message, api_keys=tuple(rows))


def _places(message: Any) -> Iterator[Any]:
    """The structures that have a host and a port: the response itself, or those in one of its arrays."""
    if message is None:
        return
    if _is_place(message):
        yield message
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, tuple):
            yield from (one for one in value if _is_place(one))


def _is_place(value: Any) -> bool:
    """An address; FindCoordinator answers an empty one with an error."""
    return bool(getattr(value, "host", "")) and hasattr(value, "port")


def _node_id(place: Any) -> int:
    return int(place.broker_id if hasattr(place, "broker_id") else place.node_id)


def _replaced(value: Any, replace: _Replace) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, tuple) and any(map(_is_place, inner)):
            changes[field.name] = tuple(_replaced(one, replace) if _is_place(one) else one for one in inner)
    if _is_place(value):
        there = replace(Endpoint(value.host, value.port))
        changes |= {"host": there.host, "port": type(value.port)(there.port)}
    return dataclasses.replace(value, **changes) if changes else value
