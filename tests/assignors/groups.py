"""Groups for the tests: hypothesis strategies, and a group that goes through rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st

from groupstorm.assignors.contract import AssignmentResult, Assignor, MapOrder, TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition

MEMBER_IDS = st.text("abcxyz0129-éΩ𝒳ﾮ", min_size=1, max_size=6)
TOPICS = st.dictionaries(st.sampled_from([f"t{n}" for n in range(6)]), st.integers(1, 9), min_size=1)


class RebalancingGroup:
    """Members of one group, which keep their last assignment; ``step`` is one rebalance.

    A cooperative member keeps its assigned partitions and revokes the others when it gets the assignment.
    """

    def __init__(self, assignor: Assignor, topics: Mapping[str, int]) -> None:
        self.assignor = assignor
        self.topics = {topic: TopicMetadata(partitions) for topic, partitions in topics.items()}
        self.subscribed: dict[str, tuple[str, ...]] = {}
        self.owned: dict[str, tuple[TopicPartition, ...]] = {}
        self.generation = 0

    def join(self, members: Mapping[str, Iterable[str]]) -> None:
        self.subscribed.update({member: tuple(topics) for member, topics in members.items()})

    def leave(self, member: str) -> None:
        self.subscribed.pop(member)
        self.owned.pop(member, None)

    def subscriptions(self) -> dict[str, Subscription]:
        """Return the subscriptions that they would send; a member that changed its topics has dropped those
        it left."""
        found: dict[str, Subscription] = {}
        for member, topics in self.subscribed.items():
            last = self.owned.get(member)
            generation = self.generation if last is not None else -1
            still = tuple(tp for tp in last or () if tp.topic in topics)
            found[member] = Subscription(
                topics,
                self.assignor.user_data(last, generation),
                still if len(self.assignor.protocols) > 1 else (),
                generation,
            )
        return {member: found[member] for member in MapOrder.JAVA_HASH.arrange(found)}

    def step(self) -> AssignmentResult:
        """One rebalance: all members join, the leader assigns, all members take the assignment."""
        result = self.assignor.assign(self.topics, self.subscriptions())
        self.generation += 1
        self.owned = {member: tuple(result.partitions[member]) for member in self.subscribed}
        return result

    def owners(self) -> dict[TopicPartition, list[str]]:
        found: dict[TopicPartition, list[str]] = {}
        for member, partitions in self.owned.items():
            for partition in partitions:
                found.setdefault(partition, []).append(member)
        return found

    def still_owned(self) -> dict[TopicPartition, str]:
        """The owner of each partition at the next join, without partitions of topics that it has left."""
        return {
            partition: member
            for member, partitions in self.owned.items()
            for partition in partitions
            if partition.topic in self.subscribed[member]
        }

    def is_incomplete(self) -> bool:
        """Whether a partition with a subscriber has no owner."""
        return self.owners().keys() != self.wanted()

    def wanted(self) -> set[TopicPartition]:
        """Every partition with a subscriber."""
        topics = {topic for listed in self.subscribed.values() for topic in listed}
        return {
            TopicPartition(topic, partition)
            for topic in topics
            if topic in self.topics
            for partition in range(self.topics[topic].partitions)
        }


def sizes(assignment: Mapping[str, Sequence[TopicPartition]]) -> list[int]:
    return sorted(len(partitions) for partitions in assignment.values())
