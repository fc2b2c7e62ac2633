"""DeleteAcls (key 31), versions 1-3: the rules that the filters find are deleted (KIP-140).

v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.acl_messages import NO_AUTHORIZER, entry_fields, read_filter, resource_fields
from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.authorization.acls import Acl, problem_of_filter
from groupstorm.coordinator.errors import Error


def handle(state: BrokerState, call: Call) -> Done:
    filters = [read_filter(asked) for asked in call.message.filters]
    if state.authorizer is None:
        refused = _result(call, [], Error.SECURITY_DISABLED, NO_AUTHORIZER)
        return Done(call.types.response(filter_results=(refused,) * len(filters)))
    problems = [problem_of_filter(one) for one in filters]
    found = [
        state.acls.matching(one) if problem is None else []
        for one, problem in zip(filters, problems, strict=True)
    ]
    for acl in dict.fromkeys(acl for matching in found for acl in matching):
        state.delete_acl(acl)
    results = tuple(
        _result(call, matching, Error.NONE if problem is None else Error.INVALID_REQUEST, problem)
        for matching, problem in zip(found, problems, strict=True)
    )
    return Done(call.types.response(filter_results=results))


API = Api(31, "DeleteAcls", 1, 3, handle)


def _result(call: Call, acls: list[Acl], error: Error = Error.NONE, sentence: str | None = None) -> Any:
    make = call.types.make
    matching = tuple(
        make(
            "DeleteAclsMatchingAcl",
            error_code=Error.NONE,
            error_message=None,
            **resource_fields(acl),
            **entry_fields(acl),
        )
        for acl in acls
    )
    return make("DeleteAclsFilterResult", error_code=error, error_message=sentence, matching_acls=matching)
