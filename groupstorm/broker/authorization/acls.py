"""Access control lists: who may or may not do what with which resources.

Sources: AclBinding, AclBindingFilter, ResourcePatternFilter, AclControlManager, AclApis.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

CLUSTER_NAME = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""
WILDCARD = "*"
"""As the name of a literal resource: every resource. As a host: every host."""
WILDCARD_PRINCIPAL = "User:*"
_UNKNOWN = 0


class ResourceType(IntEnum):
    """org.apache.kafka.common.resource.ResourceType"""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """org.apache.kafka.common.resource.PatternType"""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """org.apache.kafka.common.acl.AclOperation"""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """org.apache.kafka.common.acl.AclPermissionType"""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """One rule. ``principal``: type and name with a colon between; ``host``: an address or `WILDCARD`."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def covers(self, name: str) -> bool:
        """Whether the rule is about the resource of this name, if its type is the rule's."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


class AclFilter(NamedTuple):
    """Finds rules; None matches every name, principal or host."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        """MATCH finds the rules that are about the named resource, ANY and a type those of the same name."""
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type is PatternType.MATCH:
            return acl.covers(self.resource_name)
        return self.resource_name == acl.resource_name


def is_filter(acl: Acl) -> bool:
    """Whether the rule has a code that only filters may have: Kafka cannot even read such a rule
    (UNKNOWN_SERVER_ERROR for the whole request; ResourcePattern, AccessControlEntryData)."""
    return (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation is Operation.ANY
        or acl.permission is Permission.ANY
    )


def problem_of(acl: Acl) -> str | None:
    """Kafka's sentence about a rule that cannot be added (INVALID_REQUEST); None if it can.

    AclApis.handleCreateAcls, then AclControlManager.validateNewAcl.
    """
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    for kind, code in (
        ("resourceType", acl.resource_type),
        ("patternType", acl.pattern_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission),
    ):
        if code == _UNKNOWN:
            return f"Invalid {kind} UNKNOWN"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def problem_of_filter(wanted: AclFilter) -> str | None:
    """Kafka's sentence about a filter by which nothing can be deleted (INVALID_REQUEST;
    AclControlManager.validateFilter)."""
    if _UNKNOWN in (wanted.resource_type, wanted.pattern_type):
        return "Unknown patternFilter."
    return "Unknown entryFilter." if _UNKNOWN in (wanted.operation, wanted.permission) else None
