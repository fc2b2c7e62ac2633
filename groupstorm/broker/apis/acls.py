"""DescribeAcls, CreateAcls and DeleteAcls: the rules of the authorizer.

Their enumerations are fields of one byte each, with codes that may be unknown.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from groupstorm.broker.apis.api import Api, Call, Done
from groupstorm.broker.apis.resources import on_cluster
from groupstorm.broker.authorization import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    is_filter,
    problem_of,
    problem_of_filter,
)
from groupstorm.broker.changes import AclCreated, AclDeleted
from groupstorm.broker.state import BrokerState
from groupstorm.coordinator.errors import Error
from groupstorm.protocol.codec import CodecError
from groupstorm.turns import Turns, in_turns

_Code = TypeVar("_Code", bound=IntEnum)

_UNKNOWN = 0
#: Kafka's sentence about a request without an authorizer (SECURITY_DISABLED).
_NO_AUTHORIZER = "No Authorizer is configured."


def _read_acl(asked: Any) -> Acl:
    """A rule that a client wants to add. Codes that no enumeration has are UNKNOWN.

    Raises CodecError for the code of UNKNOWN: Kafka closes the connection (CreateAclsRequest.validate).
    """
    return Acl(
        _read_code(ResourceType, asked.resource_type),
        asked.resource_name,
        _read_code(PatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        _read_code(Operation, asked.operation),
        _read_code(Permission, asked.permission_type),
    )


def _read_filter(asked: Any) -> AclFilter:
    """The filter of a client. Raises CodecError as `_read_acl` does (DescribeAclsRequest,
    DeleteAclsRequest)."""
    return AclFilter(
        _read_code(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        _read_code(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        _read_code(Operation, asked.operation),
        _read_code(Permission, asked.permission_type),
    )


def _read_code(kind: type[_Code], code: int) -> _Code:
    if code == _UNKNOWN:
        raise CodecError(f"{kind.__name__} {code}: expected one that Kafka knows")
    try:
        return kind(code)
    except ValueError:
        return kind(_UNKNOWN)


def _entry_fields(acl: Acl) -> dict[str, Any]:
    """The fields of a rule apart from its resource."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _resource_fields(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
    }


def describe_acls(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeAcls (key 29), versions 1-3: the rules that a filter finds, by resource.

    v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs DESCRIBE on the cluster.
    """
    wanted = _read_filter(call.message)
    if state.authorizer is None:
        response = call.types.response(
            error_code=Error.SECURITY_DISABLED,
            error_message=f"{_NO_AUTHORIZER[:-1]} on the broker",
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


def _resource(call: Call, acls: list[Acl]) -> Turns[Any]:
    make = call.types.make
    described = yield from in_turns((make("AclDescription", **_entry_fields(acl)) for acl in acls), work=2)
    yield 2
    return make("DescribeAclsResource", **_resource_fields(acls[0]), acls=described)


def create_acls(state: BrokerState, call: Call) -> Turns[Done]:
    """CreateAcls (key 30), versions 1-3: rules are added; one that is there already stays (KIP-140).

    v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
    """
    acls = yield from in_turns(_read_acl(asked) for asked in call.message.creations)
    if state.authorizer is None:
        refused = _creation_result(call, Error.SECURITY_DISABLED, _NO_AUTHORIZER)
        return Done(call.types.response(results=(refused,) * len(acls)))
    if any((yield from in_turns(map(is_filter, acls)))):
        return Done(
            call.types.response(
                results=(_creation_result(call, Error.UNKNOWN_SERVER_ERROR, None),) * len(acls)
            )
        )
    results = []
    for acl in acls:
        problem = problem_of(acl)
        if problem is None and acl not in state.acls:
            state.carry_out(AclCreated(acl))
        results.append(
            _creation_result(call, Error.NONE if problem is None else Error.INVALID_REQUEST, problem)
        )
        yield 2
    return Done(call.types.response(results=tuple(results)))


def _creation_result(call: Call, error: Error, sentence: str | None) -> Any:
    return call.types.make("AclCreationResult", error_code=error, error_message=sentence)


def delete_acls(state: BrokerState, call: Call) -> Turns[Done]:
    """DeleteAcls (key 31), versions 1-3: the rules that the filters find are deleted (KIP-140).

    v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
    """
    filters = yield from in_turns(_read_filter(asked) for asked in call.message.filters)
    if state.authorizer is None:
        refused = yield from _deletion_result(call, [], Error.SECURITY_DISABLED, _NO_AUTHORIZER)
        return Done(call.types.response(filter_results=(refused,) * len(filters)))
    problems = [problem_of_filter(one) for one in filters]
    found: list[list[Acl]] = []
    for one, problem in zip(filters, problems, strict=True):
        found.append((yield from state.acls.matching(one)) if problem is None else [])
    for acl in dict.fromkeys(acl for matching in found for acl in matching):
        if acl in state.acls:
            state.carry_out(AclDeleted(acl))
        yield 2
    results = []
    for matching, problem in zip(found, problems, strict=True):
        error = Error.NONE if problem is None else Error.INVALID_REQUEST
        results.append((yield from _deletion_result(call, matching, error, problem)))
    return Done(call.types.response(filter_results=tuple(results)))


def _deletion_result(
    call: Call, acls: list[Acl], error: Error = Error.NONE, sentence: str | None = None
) -> Turns[Any]:
    make = call.types.make
    matching = yield from in_turns(
        (
            make(
                "DeleteAclsMatchingAcl",
                error_code=Error.NONE,
                error_message=None,
                **_resource_fields(acl),
                **_entry_fields(acl),
            )
            for acl in acls
        ),
        work=2,
    )
    yield 1
    return make("DeleteAclsFilterResult", error_code=error, error_message=sentence, matching_acls=matching)


APIS = (
    Api(29, "DescribeAcls", 1, 3, describe_acls, older=(2, 3), needs=(on_cluster(Operation.DESCRIBE),)),
    Api(
        30, "CreateAcls", 1, 3, create_acls, older=(2, 3), needs=(on_cluster(Operation.ALTER),),
        errors={"creations": "results"},
    ),
    Api(
        31, "DeleteAcls", 1, 3, delete_acls, older=(2, 3), needs=(on_cluster(Operation.ALTER),),
        errors={"filters": "filter_results"},
    ),
)  # fmt: skip
