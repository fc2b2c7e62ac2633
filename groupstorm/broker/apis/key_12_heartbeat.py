"""Heartbeat (key 12), versions 0-4. v3: group.instance.id (KIP-345)."""

from __future__ import annotations

from functools import cache
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import ResponseTypes


def read_heartbeat(message: Any, version: int, client_id: str) -> messages.Heartbeat:
    """The request of kio's message of this version."""
    return messages.Heartbeat(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id,
        version=version,
        client_id=client_id,
    )


def handle(_state: BrokerState, call: Call) -> AskCoordinator:
    request = read_heartbeat(call.message, call.version, call.client_id)
    return AskCoordinator((request,), lambda answers: heartbeat_response(call.types, answers[0].error))


@cache
def heartbeat_response(types: ResponseTypes, error: Error) -> Any:
    """The response for an error, made once: no response is sent more often."""
    return types.response(error_code=error)


API = AskingApi(12, "Heartbeat", 0, 4, handle, needs=(READ_GROUP,), is_repeated=True)
