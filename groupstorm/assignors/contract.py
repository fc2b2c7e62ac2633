"""The contract of a client-side assignor: a few declarations and one pure function.

Nothing has to be inherited: any object with these attributes is an assignor, so a third party's assignor
imports from here only what it uses. An assignor keeps nothing between calls, and the same object serves
any number of groups and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, java_sorted
from groupstorm.javahash import hash_order


class RebalanceProtocol(StrEnum):
    """ConsumerPartitionAssignor.RebalanceProtocol (KIP-429).

    EAGER: members give up all partitions before they join. COOPERATIVE: members keep their partitions
    while the group rebalances, so a partition may go to a new owner only after the old one has revoked it.
    """

    EAGER = "eager"
    COOPERATIVE = "cooperative"


#: Names of the module, because before Python 3.12 a member looked up on its enum costs as much as a call.
EAGER: Final = RebalanceProtocol.EAGER
COOPERATIVE: Final = RebalanceProtocol.COOPERATIVE


class TopicMetadata(NamedTuple):
    """A topic that exists: how many partitions it has, and per partition the racks of its replicas.

    ``racks`` None: unknown for all partitions. A topic without partitions counts as absent.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] | None = None


class AssignmentResult(NamedTuple):
    """The partitions of every member, in the order in which the assignor gives them.

    The sticky assignors alone fill these fields. ``constrained``: the form for equal subscriptions ran
    (AbstractStickyAssignor). ``transferring``, in that form: the partitions that change hands, by new
    owner, sorted; cooperative-sticky has withheld them. ``max_generation``: the highest generation that
    a member reported.

    ``user_data`` travels to every member with its assignment (None: no user data does); ``epoch`` is the
    epoch that KIP-315's assignor writes there. ``user_data_of``: user data for single members, by member.
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
        """The user data of a member's subscription.

        ``owned`` is the member's last assignment, None before the first one. It is complete even if the
        member has revoked partitions since: an eager member sends it after revoking all of them.
        ``generation`` is the generation of that assignment (ConsumerPartitionAssignor.onAssignment and
        subscriptionUserData).
        """
        ...

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign; members count in the order of ``subscriptions``. May raise `AssignmentRefused`."""
        ...


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
    """The order of an assignor's hash tables, if Kafka's answer depends on it.

    JAVA_HASH is Kafka's: the order of ``java.util.HashMap`` on JDK 17. SORTED makes the answer a function
    of the set of members alone.
    """

    JAVA_HASH = "java-hash"
    SORTED = "sorted"

    def arrange(self, keys: Iterable[str]) -> list[str]:
        """The distinct keys in the order of a table into which they were put one by one."""
        return hash_order(keys) if self is MapOrder.JAVA_HASH else java_sorted(dict.fromkeys(keys))


def subscribed_topics(
    topics: Mapping[str, TopicMetadata], subscriptions: Iterable[Subscription], order: MapOrder
) -> dict[str, TopicMetadata]:
    """The topics to assign, in the order of Kafka's table: existing topics with partitions and subscribers.

    AbstractPartitionAssignor.assign collects them in a HashSet and from there into a HashMap.
    """
    wanted = order.arrange({topic: None for subscription in subscriptions for topic in subscription.topics})
    existing = [topic for topic in wanted if topic in topics and topics[topic].partitions > 0]
    return {topic: topics[topic] for topic in order.arrange(existing)}
