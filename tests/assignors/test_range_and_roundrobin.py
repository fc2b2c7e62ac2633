"""Range and round robin partition by partition. Kafka's answers (golden) hold instances and racks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors.consumer.memoryless import RangeAssignor, RoundRobinAssignor
from groupstorm.assignors.contract import Assignor, TopicMetadata
from groupstorm.assignors.userdata import Subscription, java_sorted
from groupstorm.javahash import hash_order
from tests.assignors.groups import MEMBER_IDS, TOPICS


def assign(
    assignor: Assignor, topics: Mapping[str, int], members: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    known = {topic: TopicMetadata(count) for topic, count in topics.items()}
    subscriptions = {member: Subscription(tuple(listed)) for member, listed in members.items()}
    result = assignor.assign(known, subscriptions)
    return {member: [str(tp) for tp in partitions] for member, partitions in result.partitions.items()}


def test_neither_has_user_data() -> None:
    assert RangeAssignor().user_data((), 3) is None
    assert RoundRobinAssignor().user_data(None, -1) is None


SUBSCRIBED = st.dictionaries(
    MEMBER_IDS, st.lists(st.sampled_from([f"t{n}" for n in range(6)]), unique=True), min_size=1, max_size=9
)


@given(TOPICS, SUBSCRIBED)
def test_roundrobin_partition_by_partition(topics: dict[str, int], members: dict[str, list[str]]) -> None:
    """Kafka's loop: every partition to the next member in the circle that subscribes to its topic."""
    circle = java_sorted(members)
    expected: dict[str, list[str]] = {member: [] for member in members}
    turn = 0
    for topic in sorted({topic for listed in members.values() for topic in listed if topic in topics}):
        for partition in range(topics[topic]):
            while topic not in members[circle[turn % len(circle)]]:
                turn += 1
            expected[circle[turn % len(circle)]].append(f"{topic}-{partition}")
            turn += 1
    assert assign(RoundRobinAssignor(), topics, members) == expected


@given(TOPICS, SUBSCRIBED)
def test_range_topic_by_topic(topics: dict[str, int], members: dict[str, list[str]]) -> None:
    """Topics in Kafka's order, each cut into ranges for its subscribers by id."""
    expected: dict[str, list[str]] = {member: [] for member in members}
    wanted = hash_order(topic for listed in members.values() for topic in listed)
    for topic in hash_order(topic for topic in wanted if topic in topics):
        subscribers = [member for member in java_sorted(members) if topic in members[member]]
        partitions = [f"{topic}-{partition}" for partition in range(topics[topic])]
        for place, member in enumerate(subscribers):
            size = len(partitions) // (len(subscribers) - place)
            size += len(partitions) % (len(subscribers) - place) > 0
            expected[member] += partitions[:size]
            partitions = partitions[size:]
    assert assign(RangeAssignor(), topics, members) == expected
