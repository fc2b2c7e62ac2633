"""A member of a share group, as a value: every change makes a new one (Kafka: ShareGroupMember); and the
records of such groups: each is one entry of a group's state, None in its value is a tombstone.

Kafka: ShareGroupMemberMetadata, ShareGroupCurrentMemberAssignment, ShareGroupTargetAssignmentMember,
ShareGroupTargetAssignmentMetadata, ShareGroupMetadata, ShareGroupStatePartitionMetadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.server import Target
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


class ShareSubscription(NamedTuple):
    """The part of a member that its own requests determine."""

    rack: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]


class ShareAssignment(NamedTuple):
    """The part of a member that its target determines."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions


class StatePartitions(NamedTuple):
    """The partitions whose state the persister was asked to initialise, and those of which it has confirmed
    that; ``deleting``: topics whose state the persister was asked to delete."""

    initializing: Mapping[UUID, frozenset[int]] = {}
    initialized: Mapping[UUID, frozenset[int]] = {}
    deleting: frozenset[UUID] = frozenset()


class ShareMemberRecord(NamedTuple):
    """A member's subscription."""

    group: str
    member_id: str
    value: ShareSubscription | None


class ShareCurrentRecord(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str
    value: ShareAssignment | None


class ShareTargetRecord(NamedTuple):
    """A member's target assignment, topics and partitions in the assignor's order."""

    group: str
    member_id: str
    value: Target | None


class ShareTargetEpochRecord(NamedTuple):
    """The group epoch for which the targets were computed, and when (-1: never)."""

    group: str
    value: int | None
    computed_at_ms: int = -1


class ShareEpochRecord(NamedTuple):
    """The group epoch, and the hash of the topics that its members subscribe to."""

    group: str
    value: int | None
    metadata_hash: int = 0


class ShareStatePartitionsRecord(NamedTuple):
    """The group's partitions with a state, or on the way to one."""

    group: str
    value: StatePartitions | None


ShareRecord = (
    ShareMemberRecord
    | ShareCurrentRecord
    | ShareTargetRecord
    | ShareTargetEpochRecord
    | ShareEpochRecord
    | ShareStatePartitionsRecord
)
