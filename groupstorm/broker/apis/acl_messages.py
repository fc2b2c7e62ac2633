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
    """A rule that a client wants to add. Raises CodecError for unknown codes: Kafka closes the connection
    (CreateAclsRequest.validate)."""
    return Acl(
        _known(ResourceType, asked.resource_type),
        asked.resource_name,
        _known(PatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        _known(Operation, asked.operation),
        _known(Permission, asked.permission_type),
    )


def read_filter(asked: Any) -> AclFilter:
    """What a client looks for. Raises CodecError for unknown codes, as `read_acl` does (AclBindingFilter)."""
    return AclFilter(
        _known(ResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        _known(PatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        _known(Operation, asked.operation),
        _known(Permission, asked.permission_type),
    )


def _known(kind: type[_Code], code: int) -> _Code:
    try:
        known = kind(code)
    except ValueError:
        known = kind(_UNKNOWN)
    if known == _UNKNOWN:
        raise CodecError(f"{kind.__name__} {code} is unknown")
    return known


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
