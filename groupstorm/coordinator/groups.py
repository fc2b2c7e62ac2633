"""A group of whatever kind, as the modules see it that serve every kind."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from groupstorm.coordinator.modern.member import ModernMember


class GroupType(StrEnum):
    """The kinds of group, as ListGroups names them (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


class Group(Protocol):
    """The state of one group."""

    kind: ClassVar[GroupType]
    name: str
    committed: bool
    members: Any

    @property
    def state(self) -> StrEnum: ...

    @property
    def generation(self) -> int: ...

    @property
    def is_simple(self) -> bool: ...

    def former(self, ids: Iterable[str]) -> dict[str, ModernMember]: ...
