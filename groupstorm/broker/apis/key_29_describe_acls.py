"""DescribeAcls (key 29), versions 1-3: the rules that a filter finds, by resource.

v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.acl_messages import NO_AUTHORIZER, entry_fields, read_filter, resource_fields
from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.apis.rights import on_cluster
from groupstorm.broker.authorization.acls import Acl, Operation, PatternType, ResourceType
from groupstorm.coordinator.errors import Error
from groupstorm.turns import Turns, in_turns


def handle(state: BrokerState, call: Call) -> Turns[Done]:
    wanted = read_filter(call.message)
    if state.authorizer is None:
        response = call.types.response(
            error_code=Error.SECURITY_DISABLED,
            error_message=f"{NO_AUTHORIZER[:-1]} on the broker",
            resources=(),
        )
        return Done(response)
    by_resource: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in (yield from state.acls.matching(wanted)):
        yield 1
        by_resource.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    resources = []
    for acls in by_resource.values():
        resources.append((yield from _resource(call, acls)))
    return Done(call.types.response(error_code=Error.NONE, error_message=None, resources=tuple(resources)))


API = Api(29, "DescribeAcls", 1, 3, handle, older=(2, 3), needs=(on_cluster(Operation.DESCRIBE),))


def _resource(call: Call, acls: list[Acl]) -> Turns[Any]:
    make = call.types.make
    described = yield from in_turns((make("AclDescription", **entry_fields(acl)) for acl in acls), work=2)
    yield 2
    return make("DescribeAclsResource", **resource_fields(acls[0]), acls=described)
