"""The records of consumer groups: each is one entry of a group's state; None in its value is a tombstone.

Kafka: ConsumerGroupMemberMetadata, ConsumerGroupCurrentMemberAssignment,
ConsumerGroupTargetAssignmentMember, ConsumerGroupTargetAssignmentMetadata, ConsumerGroupMetadata,
ConsumerGroupRegularExpression.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from groupstorm.assignors.server import Target
from groupstorm.coordinator.consumer.member import ClassicMetadata, ConsumerMember, Partitions
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.subscribed import hash_set


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
        parts = cls(*(getattr(member, name) for name in cls._fields))
        return parts._replace(topics=tuple(sorted(member.topics)))

    def put_into(self, member: ConsumerMember) -> ConsumerMember:
        topics = {"topics": frozenset(self.topics), "topics_in_order": hash_set(self.topics)}
        return replace(member, **{**self._asdict(), **topics})


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
    value: MemberSubscription | None


class ConsumerCurrentRecord(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str
    value: CurrentAssignment | None


class ConsumerTargetRecord(NamedTuple):
    """A member's target assignment, topics and partitions in the assignor's order."""

    group: str
    member_id: str
    value: Target | None


class ConsumerTargetEpochRecord(NamedTuple):
    """The group epoch for which the targets were computed, and when (-1: never)."""

    group: str
    value: int | None
    computed_at_ms: int = -1


class ConsumerEpochRecord(NamedTuple):
    """The group epoch, and the hash of the topics that its members subscribe to."""

    group: str
    value: int | None
    metadata_hash: int = 0


class ConsumerRegexRecord(NamedTuple):
    """The topics that a regular expression matched, when, and in which version of the cluster's topics."""

    group: str
    regex: str
    value: tuple[str, ...] | None
    version: int = 0
    resolved_at_ms: int = 0


ConsumerRecord = (
    ConsumerMemberRecord
    | ConsumerCurrentRecord
    | ConsumerTargetRecord
    | ConsumerTargetEpochRecord
    | ConsumerEpochRecord
    | ConsumerRegexRecord
)
