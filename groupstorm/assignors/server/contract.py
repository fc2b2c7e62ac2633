"""What a server-side assignor is (KIP-848): the broker's own, run by the group coordinator.

Topics count by their ids, since a topic that is created anew is another one. There is no client
side: no user data, no generations, no racks (KAFKA-16694 and KAFKA-17578 took them out).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

#: A member's target assignment: topic id -> partitions, each once, in the order of the record
#: ConsumerGroupTargetAssignmentMemberValue: Kafka's hash tables are filled in it.
Target = Mapping[UUID, Sequence[int]]


class TopicDescription(NamedTuple):
    """A topic that exists (SubscribedTopicDescriber)."""

    id: UUID
    partitions: int


class MemberSpec(NamedTuple):
    """A member as an assignor sees it (MemberSubscriptionAndAssignmentImpl).

    ``topics`` are the names it subscribes to, in the order in which its set of topic ids yields them
    (TopicIds: in a broker that of a HashSet of these names); those that do not exist count for
    whether all members subscribe to the same and for the size of tables. ``target`` is what it was
    given last. ``instance`` is its group.instance.id.
    """

    topics: Sequence[str]
    target: Target
    instance: str | None = None


class ServerAssignor(Protocol):
    """The contract of a server-side assignor; ``name`` is what ConsumerGroupHeartbeat asks for."""

    @property
    def name(self) -> str: ...

    def assign(
        self, topics: Mapping[str, TopicDescription], members: Mapping[str, MemberSpec]
    ) -> dict[str, Target]:
        """New targets, an entry for every member; members count in the order of ``members``.

        A new target lists topics and partitions as the record would; a member whose target stays has
        the very mapping that it came with. `AssignmentRefused` where Kafka's assignor throws.
        """
        ...
