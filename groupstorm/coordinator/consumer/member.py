"""A member of a consumer group, as a value: every change makes a new one (Kafka: ConsumerGroupMember)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from groupstorm.javahash import hash_order

#: topic id -> partition -> the member epoch in which the partition was assigned. Never changed in place.
Partitions = Mapping[UUID, Mapping[int, int]]
#: Partitions as a request lists them.
Owned = tuple[tuple[UUID, tuple[int, ...]], ...]

#: Member epochs with a meaning of their own (ConsumerGroupHeartbeatRequest).
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class MemberState(StrEnum):
    """A member is at its target or on the way to it (Kafka: MemberState)."""

    #: The member has all that it may have at its epoch.
    STABLE = "STABLE"
    #: The member has to give partitions up and has not said yet that it did.
    UNREVOKED_PARTITIONS = "UNREVOKED_PARTITIONS"
    #: The member waits for partitions that others have not given up yet.
    UNRELEASED_PARTITIONS = "UNRELEASED_PARTITIONS"


class ClassicMetadata(NamedTuple):
    """The part of a JoinGroup that is kept of a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


def hash_set(names: Iterable[str]) -> tuple[str, ...]:
    """The names in the order of a ``HashSet`` made of them."""
    listed = list(names)
    return tuple(hash_order(listed, initial_capacity=max(int(len(listed) / 0.75) + 1, 16)))


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. ``regex`` "": the member subscribes by names alone; ``classic``: only of members that
    speak the classic protocol."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)
    classic: ClassicMetadata | None = None
    #: ``topics`` in the order of Kafka's hash set, on which assignors depend.
    topics_in_order: tuple[str, ...] = field(default=(), compare=False)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has everything of the target with this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

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
