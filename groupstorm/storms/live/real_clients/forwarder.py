"""A forwarder between client libraries and a broker: it observes requests and can cut members off.

Clients know the brokers by the forwarder's addresses only: it puts these in the place of the brokers' own in
the responses of Metadata and FindCoordinator. All other bytes pass unchanged. A member is known by its client
id, which every library sends in every request.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kio.index import KioIndexError

from groupstorm.broker.apis.members import (
    read_group_heartbeat,
    read_heartbeat,
    read_join,
    read_leave,
    read_sync,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.connection import MAX_RESPONSE_BYTES
from groupstorm.clients.wire.coordinator_link import RequestObserver
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError, decoder, encoder, request_type, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import FrameBuffer, FrameError, Header, frame, peek, read_header

_METADATA, _FIND_COORDINATOR = 3, 10
#: APIs whose responses name brokers by address.
_NAME_BROKERS = (_METADATA, _FIND_COORDINATOR)

_READ_BYTES = 65_536


class _Asked(NamedTuple):
    """A request on its way to the broker: ``request`` if its API is one of the group's."""

    api_key: int
    version: int
    request: messages.Request | None


class Forwarder:
    """Listens on loopback addresses, one for each broker that clients learn of. ``observer`` sees the
    requests and responses of all members."""

    def __init__(self, upstream: Sequence[Endpoint]) -> None:
        self.observer: RequestObserver | None = None
        self._upstream = tuple(upstream)
        self._servers: dict[Endpoint, tuple[asyncio.Server, Endpoint]] = {}
        self._links: dict[_Link, asyncio.Task[None]] = {}
        self._cut_off: dict[str, int] = {}

    async def start(self) -> tuple[Endpoint, ...]:
        """The addresses for bootstrap.servers."""
        return tuple([await self.local(endpoint) for endpoint in self._upstream])

    async def stop(self) -> None:
        for server, _ in self._servers.values():
            server.close()
        for link in tuple(self._links):
            link.abort()
        await asyncio.gather(*self._links.values(), return_exceptions=True)

    def cut_off(self, client_id: str) -> None:
        """Break the member's connections; new ones are broken at their first request."""
        self._cut_off[client_id] = self._cut_off.get(client_id, 0) + 1
        for link in tuple(self._links):
            if link.client_id == client_id:
                link.abort()

    def reconnect(self, client_id: str) -> None:
        """End one `cut_off`."""
        self._cut_off[client_id] -= 1
        if not self._cut_off[client_id]:
            del self._cut_off[client_id]

    def is_cut_off(self, client_id: str) -> bool:
        return client_id in self._cut_off

    async def local(self, endpoint: Endpoint) -> Endpoint:
        """The forwarder's own address for a broker."""
        known = self._servers.get(endpoint)
        if known is not None:
            return known[1]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            link, task = _Link(self, endpoint, reader, writer), asyncio.current_task()
            assert task is not None
            self._links[link] = task
            try:
                await link.run()
            except asyncio.CancelledError:
                link.abort()  # the run was stopped: streams would print a traceback for it
            finally:
                del self._links[link]

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        name = server.sockets[0].getsockname()
        here = Endpoint(name[0], name[1])
        raced = self._servers.setdefault(endpoint, (server, here))
        if raced[0] is not server:  # another response named the same broker meanwhile
            server.close()
        return raced[1]

    def sent(self, request: messages.Request) -> None:
        if self.observer is not None:
            self.observer.request_sent(request)

    def received(self, request: messages.Request, response: Any) -> None:
        if self.observer is not None:
            self.observer.response_received(request, response)


class _Link:
    """One connection of a client and the one to its broker."""

    def __init__(
        self,
        forwarder: Forwarder,
        endpoint: Endpoint,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.client_id: str | None = None
        self._forwarder = forwarder
        self._endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._upstream: asyncio.StreamWriter | None = None
        self._asked: deque[_Asked] = deque()

    def abort(self) -> None:
        for writer in (self._writer, self._upstream):
            if writer is not None:
                writer.transport.abort()

    async def run(self) -> None:
        """Forward frames until a side closes its connection, or sends bytes that are no frame of Kafka's."""
        try:
            upstream_reader, self._upstream = await asyncio.open_connection(
                self._endpoint.host, self._endpoint.port
            )
            there = asyncio.ensure_future(self._forward(self._reader, self._upstream, self._pass_request))
            back = asyncio.ensure_future(self._forward(upstream_reader, self._writer, self._pass_response))
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            for one in (there, back):
                one.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
        except OSError:
            pass  # the client sees its connection closed, as it would by a broker that is gone
        finally:
            self.abort()
            for asked in self._asked:
                if asked.request is not None:
                    self._forwarder.received(asked.request, Disconnected())

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Any) -> None:
        frames = FrameBuffer(MAX_RESPONSE_BYTES)
        try:
            while data := await reader.read(_READ_BYTES):
                frames.feed(data)
                while (received := frames.next_frame()) is not None:
                    writer.write(frame([await change(received)]))
                await writer.drain()
        except (OSError, FrameError, CodecError):
            return

    async def _pass_request(self, received: bytes) -> bytes:
        api_key, version = peek(received)
        if self.client_id is None or api_key in GROUP_APIS:
            header = read_header(received, _is_flexible(api_key, version))
            self.client_id = header.client_id
            if self._forwarder.is_cut_off(header.client_id):
                self.abort()
                raise ConnectionAbortedError(f"{header.client_id} is cut off")
            if api_key in GROUP_APIS:
                request = read_request(received, header)
                self._asked.append(_Asked(api_key, version, request))
                self._forwarder.sent(request)
                return received
        self._asked.append(_Asked(api_key, version, None))
        return received

    async def _pass_response(self, received: bytes) -> bytes:
        asked = self._asked.popleft()
        if asked.request is not None:
            self._forwarder.received(asked.request, read_response(received, asked.api_key, asked.request))
        elif asked.api_key in _NAME_BROKERS:
            return await self._with_local_addresses(received, asked)
        return received

    async def _with_local_addresses(self, received: bytes, asked: _Asked) -> bytes:
        root = response_types(asked.api_key, asked.version).root
        _, body_at = decoder(root.__header_schema__)(received, 0)
        message, _ = decoder(root)(received, body_at)
        for field in ("brokers", "coordinators"):
            if hasattr(message, field):
                nodes = tuple([await self._local(node) for node in getattr(message, field)])
                message = dataclasses.replace(message, **{field: nodes})
        if hasattr(message, "host"):
            message = await self._local(message)
        return received[:body_at] + b"".join(encoder(root)(message))

    async def _local(self, node: Any) -> Any:
        """A structure with the fields host and port, which are empty if it names no broker."""
        if not node.host:
            return node
        here = await self._forwarder.local(Endpoint(node.host, node.port))
        return dataclasses.replace(node, host=here.host, port=type(node.port)(here.port))


def _is_flexible(api_key: int, version: int) -> bool:
    """A version that kio does not know is newer than all that it knows, which are flexible."""
    try:
        return bool(request_type(api_key, version).__flexible__)
    except KioIndexError:
        return True


class _Api(NamedTuple):
    """The readers of one API's request and of its response."""

    read_request: Callable[[Any, int, str], messages.Request]
    read_response: Callable[[Any], messages.Response]


def _read_commit(message: Any, version: int, client_id: str) -> messages.OffsetCommit:
    """Topics that are named by their ids (version 10) have these as names."""
    return messages.OffsetCommit(
        message.group_id,
        getattr(message, "member_id", ""),
        getattr(message, "group_instance_id", None),
        getattr(message, "generation_id_or_member_epoch", -1),
        {
            _topic(topic): {
                one.partition_index: messages.CommittedOffset(one.committed_offset)
                for one in topic.partitions
            }
            for topic in message.topics
        },
        version,
        client_id,
    )


def _read_commit_response(response: Any) -> messages.OffsetCommitResponse:
    return messages.OffsetCommitResponse(
        tuple(
            (_topic(topic), partition.partition_index, Error(partition.error_code))
            for topic in response.topics
            for partition in topic.partitions
        )
    )


def _topic(topic: Any) -> str:
    name = getattr(topic, "name", None)
    return str(topic.topic_id) if name is None else name


_APIS: Mapping[int, _Api] = {
    codec.api.key: _Api(read, _read_commit_response if kind is messages.OffsetCommit else codec.read)
    for kind, read in (
        (messages.JoinGroup, read_join),
        (messages.SyncGroup, read_sync),
        (messages.Heartbeat, read_heartbeat),
        (messages.LeaveGroup, read_leave),
        (messages.OffsetCommit, _read_commit),
        (messages.ConsumerGroupHeartbeat, read_group_heartbeat),
    )
    for codec in (REQUEST_CODECS[kind],)
}

#: The APIs whose requests `read_request` reads.
GROUP_APIS = frozenset(_APIS)


def read_request(frame: bytes, header: Header) -> messages.Request:
    """The request of a frame whose API is one of GROUP_APIS. Raises CodecError."""
    message, _ = decoder(request_type(header.api_key, header.version))(frame, header.body_at)
    return _APIS[header.api_key].read_request(message, header.version, header.client_id)


def read_response(frame: bytes, api_key: int, request: messages.Request) -> messages.Response:
    """The response to ``request``, which is one of GROUP_APIS. Raises CodecError.

    A response to LeaveGroup below version 3 names no member: the one that asked has left.
    """
    root = response_types(api_key, request.version).root
    _, body_at = decoder(root.__header_schema__)(frame, 0)
    message, _ = decoder(root)(frame, body_at)
    response = _APIS[api_key].read_response(message)
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
