"""A member of a consumer group, as a value: every change makes a new one (Kafka: ConsumerGroupMember)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from groupstorm.coordinator.modern.member import MemberState, ModernMember

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
