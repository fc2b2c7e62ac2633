"""DescribeAcls (key 29), versions 1-3: the rules that a filter finds, by resource.

v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from typing import Any

from groupstorm.broker.apis.acl_messages import NO_AUTHORIZER, entry_fields, read_filter, resource_fields
from groupstorm.broker.apis.api import Api, BrokerState, Call, Done
from groupstorm.broker.authorization.acls import Acl, PatternType, ResourceType
from groupstorm.coordinator.errors import Error


def handle(state: BrokerState, call: Call) -> Done:
    wanted = read_filter(call.message)
    if state.authorizer is None:
        response = call.types.response(
            error_code=Error.SECURITY_DISABLED,
            error_message=f"{NO_AUTHORIZER[:-1]} on the broker",
            resources=(),
        )
        return Done(response)
    by_resource: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in state.acls.matching(wanted):
        by_resource.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    resources = tuple(_resource(call, acls) for acls in by_resource.values())
    return Done(call.types.response(error_code=Error.NONE, error_message=None, resources=resources))


API = Api(29, "DescribeAcls", 1, 3, handle)


def _resource(call: Call, acls: list[Acl]) -> Any:
    make = call.types.make
    described = tuple(make("AclDescription", **entry_fields(acl)) for acl in acls)
    return make("DescribeAclsResource", **resource_fields(acls[0]), acls=described)
