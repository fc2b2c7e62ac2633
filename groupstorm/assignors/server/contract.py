"""The contract of a server-side assignor (KIP-848): the group coordinator in the broker runs it.

Topics are identified by their ids, because a topic that is created anew is another topic. There is no
client side: no user data, no generations, no racks (KAFKA-16694 and KAFKA-17578 removed them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

#: A member's target assignment: topic id -> partitions, each once, in the order of the record
#: ConsumerGroupTargetAssignmentMemberValue, in which Kafka fills its hash tables.
Target = Mapping[UUID, Sequence[int]]


class TopicDescription(NamedTuple):
    """A topic that exists (SubscribedTopicDescriber)."""

    id: UUID
    partitions: int


class MemberSpec(NamedTuple):
    """A member as an assignor sees it (MemberSubscriptionAndAssignmentImpl).

    ``topics`` are the names to which it subscribes, in the order in which its set of topic ids yields them
    (TopicIds: in a broker that of a HashSet of these names). Nonexistent ones count for the comparison of
    subscriptions and for the size of tables. ``target`` is its last target. ``instance`` is its
    group.instance.id.
    """

    topics: Sequence[str]
    target: Target
    instance: str | None = None


class ServerAssignor(Protocol):
    """The contract of a server-side assignor; ``name`` travels in ConsumerGroupHeartbeat."""

    @property
    def name(self) -> str: ...

    def assign(
        self,
        topics: Mapping[str, TopicDescription],
        members: Mapping[str, MemberSpec],
        *,
        subscriptions_are_equal: bool | None = None,
    ) -> dict[str, Target]:
        """New targets, an entry for every member; members count in the order of ``members``.

        ``subscriptions_are_equal``: as the broker has counted them, which decides the algorithm; it counts
        regular expressions and the topics that they match apart. None: compare the topics of ``members``.

        A new target lists topics and partitions as the record does. If a member's target does not change,
        its entry is the same mapping object. Raises `AssignmentRefused` if Kafka's assignor throws.
        """
        ...
