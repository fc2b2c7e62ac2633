"""A member of a consumer group, as a value: every change makes a new one (Kafka: ConsumerGroupMember); and
the records of such groups: each is one entry of a group's state, None in its value is a tombstone.

Kafka: ConsumerGroupMemberMetadata, ConsumerGroupCurrentMemberAssignment,
ConsumerGroupTargetAssignmentMember, ConsumerGroupTargetAssignmentMetadata, ConsumerGroupMetadata,
ConsumerGroupRegularExpression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from groupstorm.assignors.server import Target
from groupstorm.coordinator.modern.member import LEAVE_STATIC_EPOCH, MemberState, ModernMember

#: topic id -> partition -> the member epoch in which the partition was assigned. Never changed in place.
Partitions = Mapping[UUID, Mapping[int, int]]
#: Partitions as a request lists them.
Owned = tuple[tuple[UUID, tuple[int, ...]], ...]


class ClassicMetadata(NamedTuple):
    """The part of a JoinGroup that is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember(ModernMember):
    """One member. ``regex`` "": the member subscribes by names alone; ``classic``: only of members that
    speak the classic protocol."""

    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    #: ``topics`` in the order of Kafka's hash set, on which assignors depend.
    topics_in_order: tuple[str, ...] = field(default=(), compare=False)

    @property
    def subscription(self) -> tuple[object, ...]:
        return self.topics, self.regex

    @property
    def speaks_classic(self) -> bool:
        return self.classic is not None

    def gone_for_a_while(self) -> ConsumerMember:
        nothing_known = {topic: dict.fromkeys(held, 0) for topic, held in self.assigned.items()}
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=nothing_known, revoking={})

    def with_current(self, current: tuple[int, int, MemberState, Partitions, Partitions]) -> ConsumerMember:
        """``current``: epoch, previous epoch, state, assigned and revoked partitions.

        Field by field: `dataclasses.replace` takes several times as long.
        """
        epoch, previous_epoch, state, assigned, revoking = current
        return ConsumerMember(
            self.member_id,
            epoch,
            previous_epoch,
            state,
            self.instance,
            self.rack,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
            assigned,
            revoking,
            self.topics,
            self.regex,
            self.assignor,
            self.classic,
            self.topics_in_order,
        )

    def assigned_at(self, topic: UUID, partition: int) -> int | None:
        """The epoch in which the partition was assigned to the member; None if the member has it not."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def owns_any(owned: Owned | None, partitions: Partitions) -> bool:
    """Whether the member may still own some of these partitions; silence (None) counts as owning them."""
    if owned is None:
        return True
    return any(
        number in partitions[topic] for topic, numbers in owned if topic in partitions for number in numbers
    )


def owns_only(owned: Owned | None, partitions: Partitions) -> bool:
    """Whether the member says that it owns nothing but these partitions."""
    if owned is None:
        return False
    return all(
        topic in partitions and all(number in partitions[topic] for number in numbers)
        for topic, numbers in owned
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


class CurrentAssignment(NamedTuple):
    """The part of a member that reconciliation determines."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions
    revoking: Partitions


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
