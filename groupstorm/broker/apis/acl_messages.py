"""ACLs as requests and responses write them: fields of one byte each, with codes that may be unknown."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

from groupstorm.broker.authorization.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from groupstorm.protocol.codec import CodecError

_Code = TypeVar("_Code", bound=IntEnum)

_UNKNOWN = 0
#: Kafka's sentence about a request without an authorizer (SECURITY_DISABLED).
NO_AUTHORIZER = "No Authorizer is configured."


def read_acl(asked: Any) -> Acl:
    """A rule that a client wants to add. Codes that no enumeration has are UNKNOWN.

    Raises CodecError for the code of UNKNOWN: Kafka closes the connection (CreateAclsRequest.validate).
    """
    return Acl(
        _read(ResourceType, asked.resource_type),
        asked.resource_name,
        _read(PatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        _read(Operation, asked.operation),
        _read(Permission, asked.permission_type),
    )


def read_filter(asked: Any) -> AclFilter:
    """The filter of a client. Raises CodecError as `read_acl` does (DescribeAclsRequest,
    DeleteAclsRequest)."""
    return AclFilter(
        _read(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        _read(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        _read(Operation, asked.operation),
        _read(Permission, asked.permission_type),
    )


def _read(kind: type[_Code], code: int) -> _Code:
    if code == _UNKNOWN:
        raise CodecError(f"{kind.__name__} {code}: expected one that Kafka knows")
    try:
        return kind(code)
    except ValueError:
        return kind(_UNKNOWN)


def entry_fields(acl: Acl) -> dict[str, Any]:
    """The fields of a rule apart from its resource."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def resource_fields(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
    }
