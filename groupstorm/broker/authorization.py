"""Access control lists and the decisions about them, as Kafka's StandardAuthorizer makes them.

Nothing here knows requests: `Api.needs` says what each API needs.
Sources: AclBinding, AclBindingFilter, ResourcePatternFilter, AclControlManager, AclApis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.problems import InputError
from groupstorm.turns import Turns

ANONYMOUS = "User:ANONYMOUS"


def user(name: str) -> str:
    """The principal of a user of SASL, or of a certificate's subject.

    The name is that of SASL, or the subject of the certificate that the client has shown (RFC 2253, as
    X500Principal.getName writes it), or ANONYMOUS. Source: DefaultKafkaPrincipalBuilder.
    """
    return f"User:{name}"


def read_super_users(option: str, text: str) -> tuple[str, ...]:
    """Principals with semicolons between them (StandardAuthorizer, super.users). Raises InputError."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))
    for principal in found:
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise InputError(
                f"option {option}={text}: {principal!r} is no principal, expected User:NAME;User:NAME"
            )
    return found


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


#: Operation -> those whose permission includes it.
_IMPLYING: Mapping[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset((Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
#: A name that stands for one without rules (Authorizer.authorizeByResourceType).
_ANY_NAME = "hardcode"


class Who(NamedTuple):
    """A client: its principal, as ``User:alice``, and its address without a port."""

    principal: str
    host: str


class Acls:
    """The rules of a cluster, in the order in which they were added."""

    def __init__(self) -> None:
        self._acls: dict[Acl, None] = {}
        self._literal: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._prefixed: dict[tuple[ResourceType, str], dict[Acl, None]] = {}

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __len__(self) -> int:
        return len(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        self._acls[acl] = None
        index, key = self._place(acl)
        index.setdefault(key, {})[acl] = None

    def remove(self, acl: Acl) -> None:
        """Raises KeyError if there is no such rule."""
        del self._acls[acl]
        index, key = self._place(acl)
        del index[key][acl]
        if not index[key]:
            del index[key]

    def matching(self, wanted: AclFilter) -> Turns[list[Acl]]:
        found = []
        for acl in tuple(self._acls):
            if wanted.matches(acl):
                found.append(acl)
            yield 1
        return found

    def about(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """The rules about one resource: of its name, of all prefixes of it, and of all resources."""
        yield from self._literal.get((resource_type, name), ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())
        if self._prefixed:
            for length in range(1, len(name) + 1):
                yield from self._prefixed.get((resource_type, name[:length]), ())

    def _place(
        self, acl: Acl
    ) -> tuple[dict[tuple[ResourceType, str], dict[Acl, None]], tuple[ResourceType, str]]:
        index = self._prefixed if acl.pattern_type is PatternType.PREFIXED else self._literal
        return index, (acl.resource_type, acl.resource_name)


class Authorizer:
    """Decides by ``acls``, which may change meanwhile.

    * A super user may do everything.
    * Of the rules about a resource, its principal, host and operation, one that denies wins.
    * Without such a rule the operation is denied, unless no rule at all is about the resource and
      allow.everyone.if.no.acl.found says that everybody may then.
    * A rule that allows an operation may allow another one too (`_IMPLYING`); a rule that denies one denies
      only that.
    """

    def __init__(
        self, acls: Acls, super_users: Iterable[str] = (), allow_everyone_if_no_acl_found: bool = False
    ) -> None:
        self._acls = acls
        self._super_users = frozenset(super_users)
        self._allow_without_acls = allow_everyone_if_no_acl_found

    def allows(self, who: Who, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the client may do this with the resource."""
        if who.principal in self._super_users:
            return True
        has_acls, is_allowed = False, False
        for acl in self._acls.about(resource_type, name):
            has_acls = True
            if not _is_about(acl, who):
                continue
            if acl.permission is Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation in (operation, Operation.ALL, *_IMPLYING.get(operation, ())):
                is_allowed = True
        return is_allowed or (self._allow_without_acls and not has_acls)

    def allows_some(self, who: Who, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client may do this with any resource of the type (Authorizer.authorizeByResourceType,
        which knows no implied operations)."""
        if self.allows(who, operation, resource_type, _ANY_NAME):
            return True
        acls = [
            acl
            for acl in self._acls
            if acl.resource_type is resource_type
            and _is_about(acl, who)
            and acl.operation in (operation, Operation.ALL)
        ]
        denied = {(acl.pattern_type, acl.resource_name) for acl in acls if acl.permission is Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(_outlasts(acl, denied) for acl in acls if acl.permission is Permission.ALLOW)


def _is_about(acl: Acl, who: Who) -> bool:
    return acl.principal in (who.principal, WILDCARD_PRINCIPAL) and acl.host in (who.host, WILDCARD)


def _outlasts(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether no rule that denies is about everything that this rule allows."""
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return True
        if (PatternType.LITERAL, name) in denied:
            return False
    prefixes = (name[:length] for length in range(1, len(name) + 1))
    return not any((PatternType.PREFIXED, prefix) in denied for prefix in prefixes)
