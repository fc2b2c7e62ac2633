"""StreamsGroupTopologyDescriptionUpdate (key 93), version 0 (KIP-1331).

There is no plugin that keeps descriptions of topologies, as in Kafka by default: the answer is
UNSUPPORTED_VERSION, and no member is ever asked for a description. A client needs READ on the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, BrokerState, Call
from groupstorm.broker.apis.rights import READ_GROUP
from groupstorm.coordinator.streams.messages import (
    UpdateTopologyDescription,
    UpdateTopologyDescriptionResponse,
)


def handle(_state: BrokerState, call: Call) -> AskCoordinator:
    message = call.message
    request = UpdateTopologyDescription(
        message.group_id, message.member_id, message.topology_epoch, None, call.client_id
    )

    def finish(answers: Sequence[UpdateTopologyDescriptionResponse]) -> Any:
        (answer,) = answers
        return call.types.response(error_code=answer.error, error_message=answer.error_message)

    return AskCoordinator((request,), finish)


API = AskingApi(93, "StreamsGroupTopologyDescriptionUpdate", 0, 0, handle, older=(), needs=(READ_GROUP,))
