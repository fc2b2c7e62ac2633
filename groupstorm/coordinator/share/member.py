"""A member of a share group, as a value: every change makes a new one (Kafka: ShareGroupMember)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from groupstorm.coordinator.modern.member import MemberState, ModernMember

#: topic id -> partitions
Partitions = Mapping[UUID, frozenset[int]]


@dataclass(frozen=True, slots=True)
class ShareMember(ModernMember):
    """One member. It has nothing to give up before it takes its target, so it is always stable."""

    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    #: ``topics`` in the order of Kafka's hash set, on which the assignor depends.
    topics_in_order: tuple[str, ...] = field(default=(), compare=False)

    @property
    def subscription(self) -> tuple[object, ...]:
        return (self.topics,)
