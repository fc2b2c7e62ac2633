"""Decisions about who may do what (StandardAuthorizer, StandardAuthorizerData).

* A super user may do everything.
* Of the rules about a resource, its principal, host and operation, one that denies wins.
* Without such a rule the operation is denied, unless no rule at all is about the resource and
  allow.everyone.if.no.acl.found says that everybody may then.
* A rule that allows an operation may allow another one too (`_IMPLYING`); a rule that denies one denies
  only that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from groupstorm.broker.authorization.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from groupstorm.turns import Turns

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
    """Decides by ``acls``, which may change meanwhile."""

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
