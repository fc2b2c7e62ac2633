"""ShareGroupHeartbeat (key 76), version 1 (KIP-932).

* A member needs READ on its group and DESCRIBE on each topic to which it subscribes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, BrokerState, Call, CoordinatorsApi, Done
from groupstorm.broker.apis.key_68_consumer_group_heartbeat import heartbeat_response, topics_error
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import ShareGroupHeartbeat, ShareGroupHeartbeatResponse
from groupstorm.turns import Turns

_MEMBER_ID_MAX = 36


def read_share_heartbeat(message: Any, version: int, client_id: str) -> ShareGroupHeartbeat:
    """The request of kio's message of this version."""
    return ShareGroupHeartbeat(
        group=message.group_id,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        rack=message.rack_id,
        topics=message.subscribed_topic_names,
        version=version,
        client_id=client_id,
    )


def handle(state: BrokerState, call: Call) -> Turns[AskCoordinator | Done]:
    read = read_share_heartbeat(call.message, call.version, call.client_id)
    request = read._replace(client_host=call.client_host)

    def finish(answers: Sequence[ShareGroupHeartbeatResponse]) -> Any:
        return heartbeat_response(call, answers[0])

    error = Error.INVALID_REQUEST
    if 0 < len(request.member_id) <= _MEMBER_ID_MAX:
        error = yield from topics_error(state, call, request.topics)
    if error is not Error.NONE:
        return Done(finish([ShareGroupHeartbeatResponse(error)]))
    return AskCoordinator((request,), finish)


API = CoordinatorsApi(
    76, "ShareGroupHeartbeat", 1, 1, handle, older=(), needs=(READ_GROUP,), on_topics=Operation.DESCRIBE
)
