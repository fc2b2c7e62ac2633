"""The records of consumer groups: each is one entry of a group's state; None in its value is a tombstone.

Kafka: ConsumerGroupMemberMetadata, ConsumerGroupCurrentMemberAssignment,
ConsumerGroupTargetAssignmentMember, ConsumerGroupTargetAssignmentMetadata, ConsumerGroupMetadata,
ConsumerGroupRegularExpression.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from groupstorm.assignors.server import Target
from groupstorm.coordinator.consumer.member import (
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    Partitions,
)


class MemberSubscription(NamedTuple):
    """The part of a member that its own requests determine."""

    instance: str | None
    rack: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    assignor: str | None
    classic: ClassicMetadata | None

    @classmethod
    def of(cls, member: ConsumerMember) -> MemberSubscription:
        return cls(
            member.instance,
            member.rack,
            member.rebalance_timeout_ms,
            member.client_id,
            member.client_host,
            tuple(sorted(member.topics)),
            member.regex,
            member.assignor,
            member.classic,
        )


class CurrentAssignment(NamedTuple):
    """The part of a member that reconciliation determines."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions
    revoking: Partitions

    @classmethod
    def of(cls, member: ConsumerMember) -> CurrentAssignment:
        return cls(member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking)


class ConsumerMemberRecord(NamedTuple):
    """A member's subscription."""

    group: str
    member_id: str
    subscription: MemberSubscription | None

    @property
    def key(self) -> Hashable:
        return "member", self.member_id

    @property
    def is_tombstone(self) -> bool:
        return self.subscription is None


class ConsumerCurrentRecord(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str
    current: CurrentAssignment | None

    @property
    def key(self) -> Hashable:
        return "current", self.member_id

    @property
    def is_tombstone(self) -> bool:
        return self.current is None


class ConsumerTargetRecord(NamedTuple):
    """A member's target assignment, topics and partitions in the assignor's order."""

    group: str
    member_id: str
    target: Target | None

    @property
    def key(self) -> Hashable:
        return "target", self.member_id

    @property
    def is_tombstone(self) -> bool:
        return self.target is None


class ConsumerTargetEpochRecord(NamedTuple):
    """The group epoch for which the targets were computed, and when (-1: never)."""

    group: str
    epoch: int | None
    computed_at_ms: int = -1

    @property
    def key(self) -> Hashable:
        return "target epoch"

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None


class ConsumerEpochRecord(NamedTuple):
    """The group epoch, and the hash of the topics that its members subscribe to."""

    group: str
    epoch: int | None
    metadata_hash: int = 0

    @property
    def key(self) -> Hashable:
        return "epoch"

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None


class ConsumerRegexRecord(NamedTuple):
    """The topics that a regular expression matched, when, and in which version of the cluster's topics."""

    group: str
    regex: str
    topics: tuple[str, ...] | None
    version: int = 0
    resolved_at_ms: int = 0

    @property
    def key(self) -> Hashable:
        return "regex", self.regex

    @property
    def is_tombstone(self) -> bool:
        return self.topics is None


ConsumerRecord = (
    ConsumerMemberRecord
    | ConsumerCurrentRecord
    | ConsumerTargetRecord
    | ConsumerTargetEpochRecord
    | ConsumerEpochRecord
    | ConsumerRegexRecord
)
