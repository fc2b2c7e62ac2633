"""Assignors of this package, and third parties', inside other client libraries' consumers.

* `groupstorm.clients.adapters.aiokafka`: eager assignors for aiokafka's ``AIOKafkaConsumer``;
* `groupstorm.clients.adapters.kafka_python`: eager and cooperative ones for kafka-python's ``KafkaConsumer``.

Each needs its library (extra ``kafka``). Here is their common part: one consumer's use of an assignor. Both
libraries have a class for this with the same three methods, in their own types. The methods here take and
return bytes (ConsumerProtocol), which both libraries can read and write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from groupstorm.assignors import registry
from groupstorm.assignors.contract import Assignor, RebalanceProtocol, subscription_user_data
from groupstorm.assignors.leader import JoinedMember, LeaderMemory, perform_assignment
from groupstorm.assignors.userdata import (
    NO_GENERATION,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)


class AssignorRole:
    """Keeps a consumer's last assignment and leader memory, so every consumer has its own role."""

    def __init__(self, assignor: Assignor) -> None:
        self.assignor = assignor
        self._last: Assignment | None = None
        self._generation = NO_GENERATION
        self._memory = LeaderMemory()

    def subscription(self, topics: Iterable[str], version: int) -> bytes:
        """The subscription for joining. A cooperative consumer names its owned partitions, if ``version``
        has that field.
        """
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
        """The consumer's new assignment; ``generation`` if the library passes it."""
        self._last = decode_assignment(assignment)
        self._generation = generation

    def assign(
        self, partitions_of: Callable[[str], Collection[int] | None], members: Sequence[JoinedMember]
    ) -> dict[str, bytes]:
        """As the leader: assignments by member id. ``partitions_of`` a topic: None if it does not exist.

        Raises `AssignmentRefused` and `UserDataError`, which end the rebalance in the consumer's poll.
        """
        topics = {topic for _, _, metadata in members for topic in decode_subscription(metadata).topics}
        existing = {topic: len(partitions_of(topic) or ()) for topic in sorted(topics)}
        return perform_assignment(self.assignor, existing, members, self._memory)


def is_cooperative(assignor: Assignor) -> bool:
    """Whether its members keep their partitions while the group rebalances."""
    return RebalanceProtocol.COOPERATIVE in assignor.protocols


def chosen(assignor: str | object) -> Assignor:
    """An assignor by name, as ``module:attribute``, or as an object. Raises `InputError`."""
    return registry.get(assignor) if isinstance(assignor, str) else registry.own(assignor)
