"""DescribeAcls, CreateAcls and DeleteAcls: the rules of the authorizer.

Their enumerations are fields of one byte each, with codes that may be unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_Read = TypeVar("_Read", Acl, AclFilter)

_UNKNOWN = 0
#: Kafka's sentence about a request without an authorizer (SECURITY_DISABLED).
_NO_AUTHORIZER = "No Authorizer is configured."


#: The fields of a rule in a request, and of a filter, in the order of those of `Acl` and `AclFilter`.
_OF_ACL = (
    *("resource_type", "resource_name", "resource_pattern_type"),
    *("principal", "host", "operation", "permission_type"),
)
_OF_FILTER = (
    *("resource_type_filter", "resource_name_filter", "pattern_type_filter"),
    *("principal_filter", "host_filter", "operation", "permission_type"),
)
#: The enumerations of these fields; None: a text.
_ENUMERATIONS = (ResourceType, None, PatternType, None, None, Operation, Permission)


def _read(kind: Callable[..., _Read], asked: Any, fields: Sequence[str]) -> _Read:
    """A rule that a client wants to add, or a filter. Codes that no enumeration has are UNKNOWN.

    Raises CodecError for the code of UNKNOWN: Kafka closes the connection (CreateAclsRequest.validate,
    DescribeAclsRequest, DeleteAclsRequest).
    """
    values = [getattr(asked, name) for name in fields]
    pairs = zip(_ENUMERATIONS, values, strict=True)
    return kind(*(value if codes is None else _read_code(codes, value) for codes, value in pairs))


def _read_code(kind: type[_Code], code: int) -> _Code:
    if code == _UNKNOWN:
        raise CodecError(f"{kind.__name__} {code}: expected one that Kafka knows")
    try:
        return kind(code)
    except ValueError:
        return kind(_UNKNOWN)


def _fields(call: Call, acl: Acl, structure: str) -> dict[str, Any]:
    """The fields of a rule that the structure has."""
    return call.types.fitting({**acl._asdict(), "permission_type": acl.permission}, structure)


def describe_acls(state: BrokerState, call: Call) -> Turns[Done]:
    """DescribeAcls (key 29), versions 1-3: the rules that a filter finds, by resource.

    v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs DESCRIBE on the cluster.
    """
    wanted = _read(AclFilter, call.message, _OF_FILTER)
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
    described = yield from in_turns(
        (make("AclDescription", **_fields(call, acl, "AclDescription")) for acl in acls), work=2
    )
    yield 2
    return make("DescribeAclsResource", **_fields(call, acls[0], "DescribeAclsResource"), acls=described)


def create_acls(state: BrokerState, call: Call) -> Turns[Done]:
    """CreateAcls (key 30), versions 1-3: rules are added; one that is there already stays (KIP-140).

    v1: prefixed resources (KIP-290). v3: the resource type USER (KIP-373). Needs ALTER on the cluster.
    """
    acls = yield from in_turns(_read(Acl, asked, _OF_ACL) for asked in call.message.creations)
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
    filters = yield from in_turns(_read(AclFilter, asked, _OF_FILTER) for asked in call.message.filters)
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
                **_fields(call, acl, "DeleteAclsMatchingAcl"),
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
