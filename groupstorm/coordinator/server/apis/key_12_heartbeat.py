"""Heartbeat (key 12), versions 0-4. v3: group.instance.id (KIP-345)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.server.apis.api import Api, AskCoordinator, BrokerState, Call
from groupstorm.coordinator.server.codec import ResponseTypes


def handle(_state: BrokerState, call: Call) -> AskCoordinator:
    message = call.message
    request = messages.Heartbeat(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id,
        version=call.version,
        client_id=call.client_id,
    )

    def finish(answers: Sequence[messages.HeartbeatResponse]) -> Any:
        return heartbeat_response(call.types, answers[0].error)

    return AskCoordinator((request,), finish)


@cache
def heartbeat_response(types: ResponseTypes, error: Error) -> Any:
    """There are as few of them as errors, and no answer is given more often."""
    return types.response(error_code=error)


API = Api(12, "Heartbeat", 0, 4, handle)
