"""ListGroups (key 16), versions 0-5. v4: filter by state (KIP-518). v5: filter by type (KIP-848).

Each broker lists the groups that it coordinates and that the client may describe, all to a client that may
describe the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, BrokerState, Call, CoordinatorsApi
from groupstorm.broker.apis.rights import group_error, may_on_cluster
from groupstorm.broker.authorization.acls import Operation
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns


def handle(state: BrokerState, call: Call) -> AskCoordinator:
    request = messages.ListGroups(
        states=tuple(getattr(call.message, "states_filter", ())),
        types=tuple(getattr(call.message, "types_filter", ())),
        version=call.version,
    )

    sees_all = may_on_cluster(state, call, Operation.DESCRIBE)

    def finish(answers: Sequence[messages.ListGroupsResponse]) -> Turns[Any]:
        answer = answers[0]
        groups = []
        for one in answer.groups:
            yield 2
            if not state.coordinates_group(call, one.group):
                continue
            if not sees_all and group_error(state, call, one.group) is not Error.NONE:
                continue
            listed = call.types.make(
                "ListedGroup",
                group_id=one.group,
                protocol_type=one.protocol_type,
                group_state=one.state,
                group_type=one.group_type,
            )
            groups.append(listed)
        return call.types.response(error_code=answer.error, groups=tuple(groups))

    return AskCoordinator((request,), finish)


API = CoordinatorsApi(16, "ListGroups", 0, 5, handle, older=(4, 5), on_groups=Operation.DESCRIBE)
