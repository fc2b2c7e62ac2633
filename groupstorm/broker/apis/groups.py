"""ListGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupstorm.broker.apis.api import AskCoordinator, AskingApi, Call, CoordinatorsApi
from groupstorm.broker.apis.rights import group_error, may_on_cluster
from groupstorm.broker.authorization import Operation
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator import messages
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def list_groups(state: BrokerState, call: Call) -> AskCoordinator:
    """ListGroups (key 16), versions 0-5. v4: filter by state (KIP-518). v5: filter by type (KIP-848).

    Each broker lists the groups that it coordinates and that the client may describe, all to a client that
    may describe the cluster.
    """
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
            if state.cluster.groups.node_of(one.group) != call.node:
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


def delete_groups(state: BrokerState, call: Call) -> Turns[AskCoordinator]:
    """DeleteGroups (key 42), versions 0-3: empty groups go, with their offsets (KIP-229).

    v3: a sentence about each error.
    """
    names = tuple(dict.fromkeys(call.message.groups_names))
    errors = dict((yield from in_turns((name, group_error(state, call, name)) for name in names)))
    allowed = [name for name, error in errors.items() if error is Error.NONE]
    requests = [messages.DeleteGroup(name, call.client_id) for name in allowed]

    def finish(answers: Sequence[messages.DeleteGroupResponse]) -> Turns[Any]:
        decided = {name: answer.error for name, answer in zip(allowed, answers, strict=True)}
        results = yield from in_turns(
            call.types.make("DeletableGroupResult", group_id=name, error_code=decided.get(name, error))
            for name, error in errors.items()
        )
        return call.types.response(results=results)

    return AskCoordinator(requests, finish)


APIS = (
    CoordinatorsApi(16, "ListGroups", 0, 5, list_groups, older=(4, 5), on_groups=Operation.DESCRIBE),
    AskingApi(42, "DeleteGroups", 0, 3, delete_groups, older=(2, 2), on_groups=Operation.DELETE),
)
