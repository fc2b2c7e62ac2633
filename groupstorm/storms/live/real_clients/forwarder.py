"""A forwarder between client libraries and a broker: it observes requests and can cut members off.

A member is known by its client id, which every library sends in every request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupstorm.broker.apis.api import read
from groupstorm.broker.apis.members import (
    read_group_heartbeat,
    read_heartbeat,
    read_join,
    read_leave,
    read_sync,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.coordinator_link import RequestObserver
from groupstorm.clients.wire.group_requests import REQUEST_CODECS, topic_name
from groupstorm.coordinator import messages
from groupstorm.protocol.codec import decoder, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.storms.live.forwarding import Connection, Forwarded, Forwarder


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
