"""Range and roundrobin: assignors whose answer does not depend on the last one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupstorm.assignors.consumer.claims import Claim
from groupstorm.assignors.consumer.index import PartitionIndex
from groupstorm.assignors.consumer.indexed import OwnedFrom
from groupstorm.assignors.contract import (
    AssignmentResult,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
    subscribed_topics,
)
from groupstorm.assignors.userdata import NO_GENERATION, Subscription, TopicPartition


@dataclass(frozen=True)
class MemorylessAssignor(ABC):
    """The common part of both; ``bug_compat``: do as Kafka does even if that is no valid answer."""

    order: MapOrder = MapOrder.JAVA_HASH
    bug_compat: bool = False

    protocols: ClassVar[tuple[RebalanceProtocol, ...]] = (RebalanceProtocol.EAGER,)
    needs_equal_subscriptions: ClassVar[bool] = False
    owned_from: ClassVar[OwnedFrom] = OwnedFrom(field=False, user_data=False)
    reads_nonexistent: ClassVar[bool] = False

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """None: these assignors send no user data."""
        return None

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign as AbstractPartitionAssignor.assign does."""
        wanted = subscribed_topics(topics, subscriptions.values(), self.order)
        index = PartitionIndex(wanted)
        claims = [
            Claim(member, sub.topics, [], None, NO_GENERATION, sub.rack, sub.instance)
            for member, sub in subscriptions.items()
        ]
        plan = self.assign_indexed(index, wanted, claims, range(len(claims)))
        return AssignmentResult(
            {claim.member: index.names(assigned) for claim, assigned in zip(claims, plan, strict=True)}
        )

    @abstractmethod
    def assign_indexed(
        self,
        index: PartitionIndex,
        topics: Mapping[str, TopicMetadata],
        claims: Sequence[Claim],
        visit: Sequence[int],
    ) -> list[list[int]]:
        """As `IndexedAssignor.assign_indexed`; ``visit`` does not matter."""
