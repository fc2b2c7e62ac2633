"""A forwarder between client libraries and a broker: it observes requests and can cut members off.

A member is known by its client id, which every library sends in every request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.broker.apis.fields import read
from groupstorm.broker.apis.members import (
    read_group_heartbeat,
    read_heartbeat,
    read_join,
    read_leave,
    read_sync,
)
from groupstorm.clients.operations import Disconnected
from groupstorm.clients.wire.coordinator_link import RequestObserver
from groupstorm.clients.wire.group_requests import REQUEST_CODECS
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
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


class _Api(NamedTuple):
    """The readers of one API's request and of its response."""

    read_request: Callable[[Any, int, str], messages.Request]
    read_response: Callable[[Any], messages.Response]


def _read_commit(message: Any, version: int, client_id: str) -> messages.OffsetCommit:
    """Topics that are named by their ids (version 10) have these as names."""
    offsets = {
        _topic(topic): {
            one.partition_index: messages.CommittedOffset(one.committed_offset) for one in topic.partitions
        }
        for topic in message.topics
    }
    return read(messages.OffsetCommit, message, version, client_id, offsets=offsets)


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
    codec.api.key: _Api(reader, _read_commit_response if kind is messages.OffsetCommit else codec.read)
    for kind, reader in (
        (messages.JoinGroup, read_join),
        (messages.SyncGroup, read_sync),
        (messages.Heartbeat, read_heartbeat),
        (messages.LeaveGroup, read_leave),
        (messages.OffsetCommit, _read_commit),
        (messages.ConsumerGroupHeartbeat, read_group_heartbeat),
    )
    for codec in (REQUEST_CODECS[kind],)
}


def _read_request(request: Forwarded) -> messages.Request | None:
    """A member's request to its group; None: another request. Raises CodecError."""
    api = _APIS.get(request.api_key)
    if api is None or request.header is None:
        return None
    return api.read_request(request.message(), request.version, request.header.client_id)


def _read_response(frame: bytes, api_key: int, request: messages.Request) -> messages.Response:
    """The response to a member's request. Raises CodecError.

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
