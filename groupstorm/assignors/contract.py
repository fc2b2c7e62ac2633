"""What an assignor is: a few declarations and one pure function.

Nothing has to be inherited: any object with these attributes is an assignor, so a third party's
needs to import from here only what it uses. An assignor keeps nothing between calls; the same
object serves any number of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, java_sorted
from groupstorm.javahash import hash_order


class RebalanceProtocol(StrEnum):
    """ConsumerPartitionAssignor.RebalanceProtocol (KIP-429).

    EAGER: members give up everything before they join. COOPERATIVE: members keep what they own
    while the group rebalances, so nothing may be given to one member before another has let go.
    """

    EAGER = "eager"
    COOPERATIVE = "cooperative"


#: Looked up on the class, a member costs as much as a call before Python 3.12.
EAGER: Final = RebalanceProtocol.EAGER
COOPERATIVE: Final = RebalanceProtocol.COOPERATIVE


class TopicMetadata(NamedTuple):
    """A topic that exists: how many partitions, and per partition the racks of its replicas.

    ``racks`` None: unknown for all of them. A topic of no partitions is as good as absent.
    """

    partitions: int
    racks: tuple[frozenset[str], ...] | None = None


class AssignmentResult(NamedTuple):
    """Who gets what, in the order in which the assignor gives it; every member has an entry.

    The other fields tell how the sticky assignors came to it and are None elsewhere:
    ``constrained``: the form for equal subscriptions ran (AbstractStickyAssignor); then
    ``transferring`` names what changes hands and to whom, sorted (and cooperative-sticky has
    withheld it); ``max_generation`` is the highest generation that a member reported.

    ``user_data`` travels to every member with its assignment (None: nothing does); ``epoch`` is what
    KIP-315's assignor says in it. ``user_data_of``: what travels to each member alone, by member.
    """

    partitions: Mapping[str, Sequence[TopicPartition]]
    constrained: bool | None = None
    transferring: Mapping[str, Sequence[TopicPartition]] | None = None
    max_generation: int | None = None
    user_data: bytes | None = None
    epoch: int | None = None
    user_data_of: Mapping[str, bytes] | None = None


class AssignmentRefused(Exception):
    """The assignor has no answer. ``error`` names the kind: for Kafka's own defects Java's exception."""

    def __init__(self, error: str, message: str | None) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        self.message = message


class Assignor(Protocol):
    """The contract of a client-side assignor.

    ``name`` is what travels in JoinGroup. ``protocols`` are the rebalance protocols it supports.
    ``needs_equal_subscriptions``: it promises nothing when members subscribe to different topics.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]: ...

    @property
    def needs_equal_subscriptions(self) -> bool: ...

    def user_data(self, owned: Sequence[TopicPartition] | None, generation: int) -> bytes | None:
        """What a member puts into its subscription.

        ``owned`` is its last assignment, all of it even if it has been revoked since (an eager member
        sends this while it owns nothing), None before the first; ``generation`` is the one of that
        assignment (ConsumerPartitionAssignor.onAssignment and subscriptionUserData).
        """
        ...

    def assign(
        self, topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
    ) -> AssignmentResult:
        """Assign; members count in the order of ``subscriptions``. May raise `AssignmentRefused`."""
        ...


class ReadsItsAssignments(Protocol):
    """An assignor that sends its members user data, and wants it back with their next subscription."""

    def user_data_after(self, assignment: Assignment, generation: int) -> bytes | None:
        """What a member puts into its subscription: as `Assignor.user_data`, of a whole assignment."""
        ...


def subscription_user_data(assignor: Assignor, last: Assignment | None, generation: int) -> bytes | None:
    """What a member puts into its subscription after ``last``, its last assignment as it was sent.

    ConsumerPartitionAssignor.onAssignment is given the whole Assignment, so that assignors can tell
    their members something (the epoch of KIP-315); most do not and are asked for `user_data`.
    """
    reads: Callable[[Assignment, int], bytes | None] | None = getattr(assignor, "user_data_after", None)
    if last is not None and reads is not None:
        return reads(last, generation)
    return assignor.user_data(None if last is None else last.partitions, generation)


class MapOrder(StrEnum):
    """In which order an assignor walks its hash tables where Kafka's answer depends on it.

    JAVA_HASH is Kafka's: the order of ``java.util.HashMap`` on JDK 17. SORTED is for people who
    want an answer that is a function of the set of members alone.
    """

    JAVA_HASH = "java-hash"
    SORTED = "sorted"

    def arrange(self, keys: Iterable[str]) -> list[str]:
        """Distinct keys in the order of a table that was filled in their order."""
        return hash_order(keys) if self is MapOrder.JAVA_HASH else java_sorted(dict.fromkeys(keys))


def subscribed_topics(
    topics: Mapping[str, TopicMetadata], subscriptions: Iterable[Subscription], order: MapOrder
) -> dict[str, TopicMetadata]:
    """The topics to assign: subscribed by somebody, existing, with partitions; as a table of Kafka's.

    AbstractPartitionAssignor.assign collects them in a HashSet and from there into a HashMap.
    """
    wanted = order.arrange({topic: None for subscription in subscriptions for topic in subscription.topics})
    existing = [topic for topic in wanted if topic in topics and topics[topic].partitions > 0]
    return {topic: topics[topic] for topic in order.arrange(existing)}
