"""Group requests as JSON: every field under kio's name, bytes as hex beside what they mean."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from groupstorm.assignors.userdata import UserDataError, decode_assignment, decode_subscription
from groupstorm.broker.apis import APIS
from groupstorm.protocol.codec import decoder, request_type
from groupstorm.protocol.codec.shape import MILLISECOND
from groupstorm.protocol.headers import peek, read_header

Json: TypeAlias = Any

#: The APIs that a member's coordinator sees, by key.
GROUP_APIS: Mapping[int, str] = {key: APIS[key].name for key in range(8, 15)}


def read_request(frame: bytes) -> dict[str, Json] | None:
    """A group request in a frame; None for one of another API."""
    api_key, version = peek(frame)
    if api_key not in GROUP_APIS:
        return None
    root = request_type(api_key, version)
    header = read_header(frame, flexible=root.__flexible__)
    message, _ = decoder(root)(frame, header.body_at)
    return {"api": GROUP_APIS[api_key], "version": version, "client_id": header.client_id, **_fields(message)}


def _fields(message: Any) -> dict[str, Json]:
    return {
        field.name: _value(field.name, getattr(message, field.name)) for field in dataclasses.fields(message)
    }


def _value(name: str, value: Any) -> Json:
    if dataclasses.is_dataclass(value):
        return _fields(value)
    if isinstance(value, tuple):
        return [_value(name, one) for one in value]
    if isinstance(value, datetime.timedelta):
        return int(value // MILLISECOND)
    if isinstance(value, bytes):
        return {"hex": value.hex(), "means": _MEANING[name](value)}
    return value


def _subscription(encoded: bytes) -> Json:
    try:
        subscription = decode_subscription(encoded)
    except UserDataError as problem:
        return str(problem)
    return {
        "topics": list(subscription.topics),
        "user_data": None if subscription.user_data is None else subscription.user_data.hex(),
        "owned": [str(partition) for partition in subscription.owned],
        "generation": subscription.generation,
        "rack": subscription.rack,
    }


def _assignment(encoded: bytes) -> Json:
    try:
        return [str(partition) for partition in decode_assignment(encoded).partitions]
    except UserDataError as problem:
        return str(problem)


#: Fields of bytes, and what their bytes are.
_MEANING: Mapping[str, Callable[[bytes], Json]] = {"metadata": _subscription, "assignment": _assignment}


def collapse(requests: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Drop repeated heartbeats and lookups, whose number is a matter of time: each is kept where it differs
    from the last of its kind, or for lookups where another request came between."""
    kept: list[dict[str, Json]] = []
    last_heartbeat: dict[str, Json] | None = None
    for request in requests:
        if request["api"] == "Heartbeat":
            if request == last_heartbeat:
                continue
            last_heartbeat = request
        elif request["api"] == "FindCoordinator" and kept and request == kept[-1]:
            continue
        kept.append(request)
    return kept
