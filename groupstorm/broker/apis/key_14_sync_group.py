"""SyncGroup (key 14), versions 0-5.

* v3: group.instance.id. v5: protocol type and name, which must both be there, else
  INCONSISTENT_GROUP_PROTOCOL (KIP-559); the check is the API layer's, before the coordinator's.
* A follower's SyncGroup that waits for the leader's plan mutes its connection.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call, Done
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error

_FIRST_WITH_PROTOCOL = 5


def read_sync(message: Any, version: int, client_id: str) -> messages.SyncGroup:
    """The request of kio's message of this version."""
    return messages.SyncGroup(
        group=message.group_id,
        member_id=message.member_id,
        group_instance_id=getattr(message, "group_instance_id", None),
        generation=message.generation_id,
        protocol_type=getattr(message, "protocol_type", None),
        protocol=getattr(message, "protocol_name", None),
        assignments=tuple((one.member_id, one.assignment) for one in message.assignments),
        version=version,
        client_id=client_id,
    )


def handle(_state: BrokerState, call: Call) -> AskCoordinator | Done:
    request = read_sync(call.message, call.version, call.client_id)
    if call.version >= _FIRST_WITH_PROTOCOL and None in (request.protocol_type, request.protocol):
        return Done(_response(call, messages.SyncGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL)))
    return AskCoordinator((request,), lambda answers: _response(call, *answers))


API = AskingApi(14, "SyncGroup", 0, 5, handle, needs=(READ_GROUP,))


def _response(call: Call, answer: messages.SyncGroupResponse) -> Any:
    return call.types.response(
        error_code=answer.error,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
