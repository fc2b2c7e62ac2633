"""LeaveGroup (key 13), versions 0-5.

* v0-2 name one member, and its error is the response's. v3: several members, each with its error
  (KIP-345). v5: the reason.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, at_once, in_turns

_FIRST_BATCHED_VERSION = 3


def read_leave(message: Any, version: int, client_id: str) -> messages.LeaveGroup:
    """The request of kio's message of this version."""
    return at_once(_read(message, version, client_id))


def _read(message: Any, version: int, client_id: str) -> Turns[messages.LeaveGroup]:
    if version < _FIRST_BATCHED_VERSION:
        members: tuple[messages.LeavingMember, ...] = (messages.LeavingMember(message.member_id),)
    else:
        members = yield from in_turns(
            messages.LeavingMember(one.member_id, one.group_instance_id, getattr(one, "reason", None))
            for one in message.members
        )
    return messages.LeaveGroup(group=message.group_id, members=members, version=version, client_id=client_id)


def handle(_state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    request = yield from _read(call.message, call.version, call.client_id)
    return AskCoordinator((request,), lambda answers: _response(call, *answers))


API = AskingApi(13, "LeaveGroup", 0, 5, handle, older=(4, 5), needs=(READ_GROUP,))


def _response(call: Call, answer: messages.LeaveGroupResponse) -> Turns[Any]:
    if call.version < _FIRST_BATCHED_VERSION:
        errors = (answer.error, *(member.error for member in answer.members))
        first = next((error for error in errors if error is not Error.NONE), Error.NONE)
        return call.types.response(error_code=first)
    members = yield from in_turns(
        call.types.make(
            "MemberResponse",
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=member.error,
        )
        for member in answer.members
    )
    return call.types.response(error_code=answer.error, members=members)
