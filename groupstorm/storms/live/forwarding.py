"""A forwarder between clients and brokers: a listener per broker, a connection to the broker per connection
of a client; and one that observes and cuts off members of client libraries.

Where a response names brokers, clients get the forwarder's addresses. Subclasses observe requests and
responses, hold them back or answer them. All of it runs on one event loop.

A member is known by its client id, which every library sends in every request.
"""

from __future__ import annotations

import asyncio
import dataclasses
import struct
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.apis import APIS
from groupstorm.broker.apis.api import read
from groupstorm.broker.apis.members import (
    read_group_heartbeat,
    read_heartbeat,
    read_join,
    read_leave,
    read_sync,
)
from groupstorm.broker.connection import shut_down
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.connection import MAX_RESPONSE_BYTES, body_type
from groupstorm.clients.wire.coordinator_link import RequestObserver
from groupstorm.clients.wire.group_requests import REQUEST_CODECS, topic_name
from groupstorm.coordinator import messages
from groupstorm.protocol.codec import CodecError, decoder, encoder, request_type, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import Header, frame, peek, read_header

#: The interface on which clients reach a forwarder.
HOST = "127.0.0.1"
#: The node of a bootstrap address, until a response has named the broker there.
UNKNOWN_NODE = -1
_LENGTH = struct.Struct(">i")
_PRODUCE = 0
_API_VERSIONS = 18
#: Their responses name brokers: Produce, Fetch (KIP-951), Metadata, FindCoordinator, DescribeCluster,
#: ShareFetch, ShareAcknowledge.
_NAMING_BROKERS = frozenset((0, 1, 3, 10, 60, 78, 79))


class Forwarded(NamedTuple):
    """A client's request. ``frame``: without its length. ``header``: None if the emulator does not serve this
    version of the API."""

    frame: bytes
    api_key: int
    version: int
    header: Header | None

    def message(self) -> Any:
        """The request as kio's dataclass, if it has a header. Raises CodecError."""
        assert self.header is not None
        message, _ = decoder(request_type(self.api_key, self.version))(self.frame, self.header.body_at)
        return message

    def expects_response(self) -> bool:
        """Whether the broker answers the request: not if it is Produce with acks=0. Raises CodecError."""
        return self.api_key != _PRODUCE or self.header is None or bool(self.message().acks != 0)


def _read_forwarded(received: bytes) -> Forwarded:
    api_key, version = peek(received)
    api, header = APIS.get(api_key), None
    if api is not None and api.min_version <= version <= api.max_version:
        header = read_header(received, request_type(api_key, version).__flexible__)
    return Forwarded(received, api_key, version, header)


class Forwarder:
    """Stands in front of the brokers of one cluster, from `start` to `stop`. Clients connect to
    ``bootstrap``, and reach each broker through a listener of its own."""

    def __init__(self, brokers: Sequence[Endpoint]) -> None:
        """``brokers``: the cluster's bootstrap addresses."""
        #: Where clients connect.
        self.bootstrap: tuple[Endpoint, ...] = ()
        self.listeners: dict[Endpoint, Listener] = {}
        self.connections: set[Connection] = set()
        self._brokers = brokers

    async def start(self) -> None:
        self.bootstrap = tuple([await self._reached_at(one, UNKNOWN_NODE) for one in self._brokers])

    async def stop(self) -> None:
        for listener in self.listeners.values():
            for one in listener.server.sockets:
                shut_down(one)
            listener.server.close()
        serving = [connection.task for connection in self.connections]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def on_request(self, connection: Connection, request: Forwarded) -> bool:
        """Whether the broker does not get the request. OSError and CodecError end the connection."""
        return False

    async def on_response(self, connection: Connection, request: Forwarded, response: bytes) -> None:
        """The broker has answered; the client has not got the response. CodecError ends the connection."""

    def on_lost(self, request: Forwarded) -> None:
        """The connection has ended before the response."""

    def on_listener(self, listener: Listener) -> None:
        """The listener of another broker is about to start."""

    async def localize(self, request: Forwarded, response: bytes) -> bytes:
        """The response with our addresses, and with the versions of APIs that we know. Raises CodecError."""
        names_brokers = request.api_key in _NAMING_BROKERS
        if request.header is None or not (names_brokers or request.api_key == _API_VERSIONS):
            return response
        types = response_types(request.api_key, request.version)
        _, body_at = decoder(types.root.__header_schema__)(response, 0)
        root = body_type(request.api_key, types, response, body_at)
        message, _ = decoder(root)(response, body_at)
        local = await self._localized(message) if names_brokers else _with_known_versions(message)
        return response if local is message else response[:body_at] + b"".join(encoder(root)(local))

    async def _localized(self, value: Any) -> Any:
        """The structure, and those in its arrays, with our addresses."""
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if isinstance(inner, tuple) and any(map(_is_place, inner)):
                changes[field.name] = tuple([await self._localized(one) for one in inner])
        if _is_place(value):
            node_id = value.broker_id if hasattr(value, "broker_id") else value.node_id
            here = await self._reached_at(Endpoint(value.host, value.port), int(node_id))
            changes |= {"host": here.host, "port": type(value.port)(here.port)}
        return dataclasses.replace(value, **changes) if changes else value

    async def _reached_at(self, broker: Endpoint, node_id: int) -> Endpoint:
        listener = self.listeners.get(broker)
        if listener is None:
            listener = self.listeners[broker] = Listener(self, broker, node_id)
            self.on_listener(listener)
            await listener.start()
        elif node_id != UNKNOWN_NODE:
            listener.node_id = node_id
        await listener.listens.wait()
        return listener.at


class Listener:
    """Where clients reach one broker."""

    def __init__(self, forwarder: Forwarder, broker: Endpoint, node_id: int) -> None:
        self.node_id = node_id
        self.broker = broker
        self.at = Endpoint("", 0)
        self.listens = asyncio.Event()
        #: Is clear while the broker is paused: no request is handed on, and no response.
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self._forwarder = forwarder

    async def start(self) -> None:
        self.server = await asyncio.start_server(self._serve, HOST, 0)
        self.at = Endpoint(HOST, self.server.sockets[0].getsockname()[1])
        self.listens.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = Connection(self._forwarder, self, task, reader, writer)
        self._forwarder.connections.add(connection)
        try:
            await connection.serve()
        except* (OSError, EOFError, CodecError):  # one of the two sides has ended it, or is not a client
            pass
        except* asyncio.CancelledError:
            pass  # the forwarder stops: streams would print a traceback for it
        finally:
            connection.end()
            self._forwarder.connections.discard(connection)


class Connection:
    """One client's connection to one broker."""

    def __init__(
        self,
        forwarder: Forwarder,
        listener: Listener,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        #: Serves the connection until it ends.
        self.task = task
        self.listener = listener
        self.client_id: str | None = None
        #: Its task ends soon.
        self.is_aborted = False
        #: Is clear while the broker owes a response.
        self.is_answered = asyncio.Event()
        self.is_answered.set()
        self._forwarder = forwarder
        self._reader = reader
        self._writer = writer
        self._to_broker: asyncio.StreamWriter | None = None
        self._unanswered: deque[Forwarded] = deque()

    def abort(self) -> None:
        self.is_aborted = True
        shut_down(self._writer.get_extra_info("socket"))
        self._writer.transport.abort()
        if self._to_broker is not None:
            self._to_broker.transport.abort()

    def end(self) -> None:
        self.abort()
        for request in self._unanswered:
            self._forwarder.on_lost(request)

    def close(self) -> None:
        """End the connection as soon as the client has all responses so far."""
        self._writer.write_eof()  # a forked process may keep the socket open, see `shut_down`
        self._writer.close()  # the next read ends

    async def send(self, framed: bytes) -> None:
        """Hand a response to the client."""
        await self.listener.goes_on.wait()
        self._writer.write(framed)
        await self._writer.drain()

    async def serve(self) -> None:
        """Hand on requests and responses until one side closes its connection."""
        broker = self.listener.broker
        from_broker, self._to_broker = await asyncio.open_connection(broker.host, broker.port)
        async with asyncio.TaskGroup() as tasks:  # the end of either side ends both tasks
            tasks.create_task(self._serve_responses(from_broker))
            await self._serve_requests(self._to_broker)

    async def _serve_requests(self, to_broker: asyncio.StreamWriter) -> None:
        while True:
            request = _read_forwarded(await _read_frame(self._reader))
            await self.listener.goes_on.wait()
            if request.header is not None:
                self.client_id = request.header.client_id
            if await self._forwarder.on_request(self, request):
                continue
            if request.expects_response():
                self._unanswered.append(request)
                self.is_answered.clear()
            to_broker.write(frame([request.frame]))
            await to_broker.drain()

    async def _serve_responses(self, from_broker: asyncio.StreamReader) -> None:
        while True:
            response = await _read_frame(from_broker)
            request = self._unanswered.popleft()
            await self._forwarder.on_response(self, request, response)
            await self.send(frame([await self._forwarder.localize(request, response)]))
            if not self._unanswered:
                self.is_answered.set()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """Without its length. Raises EOFError, OSError, and CodecError for a length that no message has."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if not 0 <= length <= MAX_RESPONSE_BYTES:
        raise CodecError(f"a message of {length} bytes was announced")
    return await reader.readexactly(length)


def _with_known_versions(message: Any) -> Any:
    """The versions that the broker and we know: of newer ones we could not read a request."""
    rows = []
    for row in message.api_keys:
        known = APIS.get(row.api_key)
        highest = row.max_version if known is None else min(row.max_version, known.max_version)
        if highest >= row.min_version:
            rows.append(dataclasses.replace(row, max_version=highest))
    return dataclasses.replace(message, api_keys=tuple(rows))


def _is_place(value: Any) -> bool:
    """An address; FindCoordinator answers an empty one with an error."""
    return bool(getattr(value, "host", "")) and hasattr(value, "port")


class MemberForwarder(Forwarder):
    """``observer`` sees the requests of all members to their group, and the responses."""

    def __init__(self, brokers: Sequence[Endpoint]) -> None:
        """``brokers``: the cluster's bootstrap addresses."""
        super().__init__(brokers)
        self.observer: RequestObserver | None = None
        self._cut_off: Counter[str] = Counter()

    def cut_off(self, client_id: str) -> None:
        """Break the member's connections; new ones are broken at their first request."""
        self._cut_off[client_id] += 1
        for connection in self.connections:
            if connection.client_id == client_id:
                connection.abort()

    def reconnect(self, client_id: str) -> None:
        """End one `cut_off`."""
        self._cut_off[client_id] -= 1

    async def on_request(self, connection: Connection, request: Forwarded) -> bool:
        if connection.client_id is not None and self._cut_off[connection.client_id]:
            raise ConnectionAbortedError(f"{connection.client_id} is cut off")
        if (sent := _read_request(request)) is not None and self.observer is not None:
            self.observer.request_sent(sent)
        return False

    async def on_response(self, connection: Connection, request: Forwarded, response: bytes) -> None:
        if (sent := _read_request(request)) is not None and self.observer is not None:
            self.observer.response_received(sent, _read_response(response, request.api_key, sent))

    def on_lost(self, request: Forwarded) -> None:
        if (sent := _read_request(request)) is not None and self.observer is not None:
            self.observer.response_received(sent, Disconnected())


def _read_commit(message: Any, version: int, client_id: str) -> messages.OffsetCommit:
    """Topics that are named by their ids (version 10) have these as names."""
    offsets = {
        topic_name(topic): {
            one.partition_index: messages.CommittedOffset(one.committed_offset) for one in topic.partitions
        }
        for topic in message.topics
    }
    return read(messages.OffsetCommit, message, version, client_id, offsets=offsets)


#: API key -> the readers of its request and of its response.
_APIS: Mapping[
    int, tuple[Callable[[Any, int, str], messages.Request], Callable[[Any], messages.Response]]
] = {
    REQUEST_CODECS[kind].api.key: (reader, REQUEST_CODECS[kind].read)
    for kind, reader in (
        (messages.JoinGroup, read_join),
        (messages.SyncGroup, read_sync),
        (messages.Heartbeat, read_heartbeat),
        (messages.LeaveGroup, read_leave),
        (messages.OffsetCommit, _read_commit),
        (messages.ConsumerGroupHeartbeat, read_group_heartbeat),
    )
}


def _read_request(request: Forwarded) -> messages.Request | None:
    """A member's request to its group; None: another request. Raises CodecError."""
    if request.header is None or request.api_key not in _APIS:
        return None
    reader, _ = _APIS[request.api_key]
    return reader(request.message(), request.version, request.header.client_id)


def _read_response(frame: bytes, api_key: int, request: messages.Request) -> messages.Response:
    """The response to a member's request. Raises CodecError.

    A response to LeaveGroup below version 3 names no member: the one that asked has left.
    """
    root = response_types(api_key, request.version).root
    _, body_at = decoder(root.__header_schema__)(frame, 0)
    message, _ = decoder(root)(frame, body_at)
    _, reader = _APIS[api_key]
    response = reader(message)
    if (
        isinstance(response, messages.LeaveGroupResponse)
        and isinstance(request, messages.LeaveGroup)
        and not response.members
    ):
        leaving = tuple(
            messages.LeftMember(one.member_id, one.group_instance_id, response.error)
            for one in request.members
        )
        return response._replace(members=leaving)
    return response
