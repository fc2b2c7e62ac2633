"""CreateAcls (key 30), versions 1-3: rules are added; one that is there already stays (KIP-140).

v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.acl_messages import NO_AUTHORIZER, read_acl
from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Operation, is_filter, problem_of
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    acls = yield from in_turns(read_acl(asked) for asked in call.message.creations)
    if state.authorizer is None:
        refused = _result(call, Error.SECURITY_DISABLED, NO_AUTHORIZER)
        return Done(call.types.response(results=(refused,) * len(acls)))
    if any((yield from in_turns(map(is_filter, acls)))):
        return Done(
            call.types.response(results=(_result(call, Error.UNKNOWN_SERVER_ERROR, None),) * len(acls))
        )
    results = []
    for acl in acls:
        problem = problem_of(acl)
        if problem is None:
            state.create_acl(acl)
        results.append(_result(call, Error.NONE if problem is None else Error.INVALID_REQUEST, problem))
        yield 2
    return Done(call.types.response(results=tuple(results)))


API = Api(
    30, "CreateAcls", 1, 3, handle, older=(2, 3), needs=(on_cluster(Operation.ALTER),),
    errors={"creations": "results"},
)  # fmt: skip


def _result(call: Call, error: Error, sentence: str | None) -> Any:
    return call.types.make("AclCreationResult", error_code=error, error_message=sentence)
