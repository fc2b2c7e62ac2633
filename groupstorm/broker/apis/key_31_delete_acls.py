"""DeleteAcls (key 31), versions 1-3: the rules that the filters find are deleted (KIP-140).

v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.acl_messages import NO_AUTHORIZER, entry_fields, read_filter, resource_fields
from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Acl, Operation, problem_of_filter
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    filters = yield from in_turns(read_filter(asked) for asked in call.message.filters)
    if state.authorizer is None:
        refused = yield from _result(call, [], Error.SECURITY_DISABLED, NO_AUTHORIZER)
        return Done(call.types.response(filter_results=(refused,) * len(filters)))
    problems = [problem_of_filter(one) for one in filters]
    found: list[list[Acl]] = []
    for one, problem in zip(filters, problems, strict=True):
        found.append((yield from state.acls.matching(one)) if problem is None else [])
    for acl in dict.fromkeys(acl for matching in found for acl in matching):
        if acl in state.acls:
            state.delete_acl(acl)
        yield 2
    results = []
    for matching, problem in zip(found, problems, strict=True):
        error = Error.NONE if problem is None else Error.INVALID_REQUEST
        results.append((yield from _result(call, matching, error, problem)))
    return Done(call.types.response(filter_results=tuple(results)))


API = Api(
    31, "DeleteAcls", 1, 3, handle, older=(2, 3), needs=(on_cluster(Operation.ALTER),),
    errors={"filters": "filter_results"},
)  # fmt: skip


def _result(
    call: Call, acls: list[Acl], error: Error = Error.NONE, sentence: str | None = None
) -> Turns[Any]:
    make = call.types.make
    matching = yield from in_turns(
        (
            make(
                "DeleteAclsMatchingAcl",
                error_code=Error.NONE,
                error_message=None,
                **resource_fields(acl),
                **entry_fields(acl),
            )
            for acl in acls
        ),
        work=2,
    )
    yield 1
    return make("DeleteAclsFilterResult", error_code=error, error_message=sentence, matching_acls=matching)
