"""Addresses of brokers in responses: clients are told those of the proxy. Only bytes in, bytes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.endpoints import Endpoint
from groupstorm.protocol.headers import read_header

_PRODUCE = 0
_API_VERSIONS = 18
#: Their responses name brokers: Produce, Fetch (KIP-951), Metadata, FindCoordinator, DescribeCluster,
#: ShareFetch, ShareAcknowledge.
_NAMING_BROKERS = frozenset((0, 1, 3, 10, 60, 78, 79))
_ERROR_BYTES = 2

#: The address at which clients reach a broker, of the broker's own.
Replace = Callable[[Endpoint], Endpoint]


class Node(NamedTuple):
    """A broker that a response names; ``id``: its node id."""

    id: int
    endpoint: Endpoint


class Answered:
    """The response to one request, read if it names brokers or versions; else its bytes stay as they are."""

    def __init__(self, request: bytes, response: bytes) -> None:
        """Both without their length. Raises CodecError."""
        api_key, version = _key_and_version(request)
        self._response = response
        self._message: Any = None
        if api_key != _API_VERSIONS and api_key not in _NAMING_BROKERS:
            return
        if (api := APIS.get(api_key)) is None or version > api.max_version:
            return
        types = response_types(api_key, version)
        _, self._body_at = decoder(types.root.__header_schema__)(response, 0)
        if api_key == _API_VERSIONS and _error(response, self._body_at) == Error.UNSUPPORTED_VERSION:
            types = response_types(api_key, 0)  # KIP-511
        self._root = types.root
        message, _ = decoder(types.root)(response, self._body_at)
        self._message = _with_known_versions(message) if api_key == _API_VERSIONS else message

    def nodes(self) -> Iterator[Node]:
        """The brokers that the response names."""
        for place in _places(self._message):
            yield Node(_node_id(place), Endpoint(place.host, place.port))

    def bytes(self, replace: Replace) -> bytes:
        """The response, without its length, with other addresses."""
        if self._message is None:
            return self._response
        replaced = _replaced(self._message, replace)
        return b"".join((self._response[: self._body_at], *encoder(self._root)(replaced)))


def expects_response(request: bytes) -> bool:
    """Whether the broker answers the request: not if it is Produce with acks=0. Raises CodecError."""
    api_key, version = _key_and_version(request)
    if api_key != _PRODUCE or version > APIS[_PRODUCE].max_version:
        return True
    root = request_type(api_key, version)
    message, _ = decoder(root)(request, read_header(request, root.__flexible__).body_at)
    return bool(message.acks != 0)


def _key_and_version(request: bytes) -> tuple[int, int]:
    return int.from_bytes(request[:2], signed=True), int.from_bytes(request[2:4], signed=True)


def _error(response: bytes, at: int) -> int:
    return int.from_bytes(response[at : at + _ERROR_BYTES], signed=True)


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


def _replaced(value: Any, replace: Replace) -> Any:
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, tuple) and any(map(_is_place, inner)):
            changes[field.name] = tuple(_replaced(one, replace) if _is_place(one) else one for one in inner)
    if _is_place(value):
        there = replace(Endpoint(value.host, value.port))
        changes |= {"host": there.host, "port": type(value.port)(there.port)}
    return dataclasses.replace(value, **changes) if changes else value
