"""The contract of a client-side assignor: a few declarations and one pure function.

Nothing has to be inherited: any object with these attributes is an assignor, so a third party's assignor
imports from here only what it uses. An assignor keeps nothing between calls, and the same object serves
any number of groups and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, java_sorted
from groupstorm.javahash import hash_order

_SIGN_BITS = 1 << 127 | 1 << 63


class RebalanceProtocol(StrEnum):
    """RebalanceProtocol (KIP-429). COOPERATIVE: members keep their partitions while the group rebalances."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


#: Names of the module, because before Python 3.12 a member looked up on its enum costs as much as a call.
EAGER: Final = RebalanceProtocol.EAGER
COOPERATIVE: Final = RebalanceProtocol.COOPERATIVE


class TopicMetadata(NamedTuple):
    """An existing topic: its size, and per partition the racks of its replicas (None: unknown)."""

    partitions: int
    racks: tuple[frozenset[str], ...] | None = None


class AssignmentResult(NamedTuple):
    """The partitions of every member, in the assignor's order.

    The sticky assignors say whether the constrained form ran, which partitions it transfers, by new
    owner, and the highest generation. ``user_data`` travels to every member, ``user_data_of`` to single
    ones; ``epoch`` is KIP-315's.
    """

    partitions: Mapping[str, Sequence[TopicPartition]]
    constrained: bool | None = None
    transferring: Mapping[str, Sequence[TopicPartition]] | None = None
    max_generation: int | None = None
    user_data: bytes | None = None
    epoch: int | None = None
    user_data_of: Mapping[str, bytes] | None = None


class AssignmentRefused(Exception):
    """The assignor has no answer. ``error`` names the kind; for a defect of Kafka: Java's exception."""

    def __init__(self, error: str, message: str | None) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        self.message = message


class Assignor(Protocol):
    """The contract of a client-side assignor.

    ``name`` travels in JoinGroup. ``protocols`` are the rebalance protocols that it supports.
    ``needs_equal_subscriptions``: it promises nothing if members subscribe to different topics.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]: ...

    @property
    def needs_equal_subscriptions(self) -> bool: ...

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """The user data of a member's subscription (subscriptionUserData).

        ``owned`` is its whole last assignment, whatever it has revoked since; None before the first
        one.
        """

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign; members count in the order of ``subscriptions``. May raise `AssignmentRefused`."""


def subscription_user_data(assignor: Assignor, last: Assignment | None, generation: int) -> bytes | None:
    """The user data of a member's subscription after ``last``, its last assignment.

    ConsumerPartitionAssignor.onAssignment gets the whole Assignment, so that an assignor can send its
    members something (the epoch of KIP-315). An assignor that wants it back has a method
    ``user_data_after(assignment, generation)``; for the others `Assignor.user_data` is called.
    """
    reads: Callable[[Assignment, int], bytes | None] | None = getattr(assignor, "user_data_after", None)
    if last is not None and reads is not None:
        return reads(last, generation)
    return assignor.user_data(None if last is None else last.partitions, generation)


class MapOrder(StrEnum):
    """The order of hash tables: that of java.util.HashMap on JDK 17, or sorted."""

    JAVA_HASH = "java-hash"
    SORTED = "sorted"

    def arrange(self, keys: Iterable[str]) -> list[str]:
        """The distinct keys in the order of a table into which they were put one by one."""
        return hash_order(keys) if self is MapOrder.JAVA_HASH else java_sorted(dict.fromkeys(keys))


def uuid_order(identifier: UUID) -> int:
    """A sort key as ``compareTo`` of Uuid and ProcessId: two signed longs, so top bits come first."""
    return identifier.int ^ _SIGN_BITS


def subscribed_topics(
    topics: Mapping[str, TopicMetadata], subscriptions: Iterable[Subscription], order: MapOrder
) -> dict[str, TopicMetadata]:
    """Existing topics with partitions and subscribers, in the order of Kafka's HashMap from a HashSet."""
    wanted = order.arrange({topic: None for subscription in subscriptions for topic in subscription.topics})
    existing = [topic for topic in wanted if topic in topics and topics[topic].partitions > 0]
    return {topic: topics[topic] for topic in order.arrange(existing)}
