"""The requests of a group's members as compact JSON, from the wire and from storms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from groupstorm.assignors.userdata import decode_subscription
from groupstorm.broker.apis import APIS as SERVED
from groupstorm.broker.broker import Broker
from groupstorm.broker.requests import BrokerEffects, Peer
from groupstorm.protocol.codec import decoder, request_type
from groupstorm.protocol.headers import peek, read_header

Json: TypeAlias = Any

#: The requests of a group's protocol: API key -> name.
APIS = {key: SERVED[key].name for key in (*range(8, 15), 68)}
_MEMBER_ID = re.compile(r"[\w.-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def record_requests(broker: Broker, on_request: Callable[[str, dict[str, Json]], None]) -> None:
    """Pass the client id and the fields of every arriving request to ``on_request``."""
    receive = broker.receive

    def listening(connection: int, peer: Peer, frame: bytes, now_ms: int) -> BrokerEffects:
        api_key, version = peek(frame)
        if api_key in APIS:
            message_type = request_type(api_key, version)
            header = read_header(frame, message_type.__flexible__)
            message, _ = decoder(message_type)(frame, header.body_at)
            on_request(
                header.client_id, {"api": APIS[api_key], "v": version, **request_fields(api_key, message)}
            )
        return receive(connection, peer, frame, now_ms)

    broker.receive = listening  # type: ignore[method-assign]  # for the test's own broker alone


def request_fields(api_key: int, message: Any) -> dict[str, Json]:
    """The fields that the member sets."""
    if APIS[api_key] == "ConsumerGroupHeartbeat":
        return _group_heartbeat(message)
    return _classic_fields(api_key, message)


def _classic_fields(api_key: int, message: Any) -> dict[str, Json]:
    match APIS[api_key]:
        case "JoinGroup":
            return _join(message)
        case "SyncGroup":
            return {
                "generation": message.generation_id,
                "protocol": getattr(message, "protocol_name", None),
                "assignments": len(message.assignments),
            }
        case "Heartbeat":
            return {"generation": message.generation_id}
        case "OffsetCommit":
            return {"generation": message.generation_id_or_member_epoch}
        case "LeaveGroup":
            members = getattr(message, "members", ())
            return {"reasons": [without_ids(getattr(member, "reason", None)) for member in members]}
    return {}


def _group_heartbeat(message: Any) -> dict[str, Json]:
    owned = message.topic_partitions
    return {
        "epoch": message.member_epoch,
        "instance": message.instance_id,
        "rack": message.rack_id,
        "rebalance_timeout_ms": _ms(message.rebalance_timeout),
        "topics": None if message.subscribed_topic_names is None else list(message.subscribed_topic_names),
        "regex": getattr(message, "subscribed_topic_regex", None),
        "assignor": message.server_assignor,
        "owned": None if owned is None else sum(len(topic.partitions) for topic in owned),
    }


def _join(message: Any) -> dict[str, Json]:
    return {
        "session_timeout_ms": _ms(message.session_timeout),
        "rebalance_timeout_ms": _ms(message.rebalance_timeout),
        "has_member_id": bool(message.member_id),
        "instance": getattr(message, "group_instance_id", None),
        "protocols": {one.name: subscription(one.metadata) for one in message.protocols},
        "reason": without_ids(getattr(message, "reason", None)),
    }


def subscription(metadata: bytes) -> dict[str, Json]:
    """The fields of a ConsumerProtocolSubscription; ``version``: its first two bytes."""
    read = decode_subscription(metadata)
    return {
        "version": int.from_bytes(metadata[:2], "big"),
        "topics": list(read.topics),
        "user_data": None if read.user_data is None else len(read.user_data),
        "owned": len(read.owned),
        "generation": read.generation,
        "rack": read.rack,
    }


def without_ids(text: str | None) -> str | None:
    """Replace member ids, which are random."""
    return None if text is None else _MEMBER_ID.sub("<member id>", text)


def _ms(duration: Any) -> int:
    return round(duration.total_seconds() * 1000)
