"""One consumer's use of an assignor: what it says on joining, remembers, and works out as the leader.

Both libraries have a class for this with the same three methods, in their own types. Here they are
in bytes (ConsumerProtocol), which both can read and write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from groupstorm.assignors import registry
from groupstorm.assignors.contract import Assignor, RebalanceProtocol, subscription_user_data
from groupstorm.assignors.leader import Member, perform_assignment
from groupstorm.assignors.leadermemory import LeaderMemory
from groupstorm.assignors.userdata import (
    NO_GENERATION,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)


class AssignorRole:
    """What the consumer was last assigned lives here, so every consumer has a role of its own."""

    def __init__(self, assignor: Assignor) -> None:
        self.assignor = assignor
        self._last: Assignment | None = None
        self._generation = NO_GENERATION
        self._memory = LeaderMemory()

    def subscription(self, topics: Iterable[str], version: int) -> bytes:
        """What the consumer joins with; a cooperative one says what it owns, where ``version`` has that."""
        subscribed = tuple(sorted(topics))
        owned = () if self._last is None or not is_cooperative(self.assignor) else self._last.partitions
        return encode_subscription(
            Subscription(
                topics=subscribed,
                user_data=subscription_user_data(self.assignor, self._last, self._generation),
                owned=tuple(partition for partition in owned if partition.topic in subscribed),
                generation=self._generation,
            ),
            version,
        )

    def assigned(self, assignment: bytes, generation: int = NO_GENERATION) -> None:
        """The consumer's new assignment; ``generation`` where the library tells it."""
        self._last = decode_assignment(assignment)
        self._generation = generation

    def assign(
        self, partitions_of: Callable[[str], Collection[int] | None], members: Sequence[Member]
    ) -> dict[str, bytes]:
        """As the leader: assignments by member id. ``partitions_of`` a topic: None where it does not exist.

        Raises `AssignmentRefused` and `UserDataError`, which end the rebalance in the consumer's poll.
        """
        topics = {topic for _, _, metadata in members for topic in decode_subscription(metadata).topics}
        existing = {topic: len(partitions_of(topic) or ()) for topic in sorted(topics)}
        return perform_assignment(self.assignor, existing, members, self._memory)


def is_cooperative(assignor: Assignor) -> bool:
    """Whether its members keep what they own while the group rebalances."""
    return RebalanceProtocol.COOPERATIVE in assignor.protocols


def chosen(assignor: str | object) -> Assignor:
    """An assignor by name, as ``module:attribute``, or one that is already there. Raises `InputError`."""
    return registry.get(assignor) if isinstance(assignor, str) else registry.own(assignor)
