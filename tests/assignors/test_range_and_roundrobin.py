"""Range and round robin: the examples of Kafka's documentation, static members, racks (KIP-881)."""

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
    assignor: Assignor, topics: Mapping[str, int | TopicMetadata], **members: Sequence[str] | Subscription
) -> dict[str, list[str]]:
    known = {
        topic: TopicMetadata(metadata) if isinstance(metadata, int) else metadata
        for topic, metadata in topics.items()
    }
    subscriptions = {
        member: topics if isinstance(topics, Subscription) else Subscription(tuple(topics))
        for member, topics in members.items()
    }
    result = assignor.assign(known, subscriptions)
    return {member: [str(tp) for tp in partitions] for member, partitions in result.partitions.items()}


def test_range_gives_the_first_members_one_more_of_every_topic() -> None:
    both = ["t0", "t1"]
    assert assign(RangeAssignor(), {"t0": 3, "t1": 3}, C0=both, C1=both) == {
        "C0": ["t0-0", "t0-1", "t1-0", "t1-1"],
        "C1": ["t0-2", "t1-2"],
    }


def test_range_leaves_members_idle_where_there_are_more_members_than_partitions() -> None:
    assert assign(RangeAssignor(), {"t": 1}, a=["t"], b=["t"], c=["gone"]) == {"a": ["t-0"], "b": [], "c": []}


def test_roundrobin_goes_on_across_topics() -> None:
    both = ["t0", "t1"]
    assert assign(RoundRobinAssignor(), {"t0": 3, "t1": 3}, C0=both, C1=both) == {
        "C0": ["t0-0", "t0-2", "t1-1"],
        "C1": ["t0-1", "t1-0", "t1-2"],
    }


def test_roundrobin_passes_over_members_that_do_not_subscribe() -> None:
    answer = assign(
        RoundRobinAssignor(),
        {"t0": 1, "t1": 2, "t2": 3},
        C0=["t0"],
        C1=["t0", "t1"],
        C2=["t0", "t1", "t2"],
    )
    assert answer == {"C0": ["t0-0"], "C1": ["t1-0"], "C2": ["t1-1", "t2-0", "t2-1", "t2-2"]}


def test_static_members_come_first_and_by_instance() -> None:
    """A restart that draws new member ids changes nothing for them (KIP-345)."""
    for assignor in (RangeAssignor(), RoundRobinAssignor()):
        answer = assign(
            assignor,
            {"t": 3},
            z=Subscription(("t",), instance="i1"),
            y=Subscription(("t",), instance="i2"),
            a=["t"],
        )
        assert answer == {"z": ["t-0"], "y": ["t-1"], "a": ["t-2"]}


def racked(racks: str) -> TopicMetadata:
    return TopicMetadata(len(racks), tuple(frozenset({f"r{rack}"}) for rack in racks))


def test_range_prefers_the_rack_without_changing_the_sizes() -> None:
    answer = assign(
        RangeAssignor(),
        {"t": racked("2121")},
        a=Subscription(("t",), rack="r1"),
        b=Subscription(("t",), rack="r2"),
    )
    assert answer == {"a": ["t-1", "t-3"], "b": ["t-0", "t-2"]}


def test_co_partitioned_topics_stay_together_even_with_racks() -> None:
    """KAFKA-14891: partition n of both topics goes to one member, who is in the rack of both."""
    both = ("t0", "t1")
    answer = assign(
        RangeAssignor(),
        {"t0": racked("21"), "t1": racked("21")},
        a=Subscription(both, rack="r1"),
        b=Subscription(both, rack="r2"),
    )
    assert answer == {"a": ["t0-1", "t1-1"], "b": ["t0-0", "t1-0"]}


def test_racks_change_nothing_where_every_rack_has_a_replica() -> None:
    everywhere = TopicMetadata(2, (frozenset({"r1", "r2"}),) * 2)
    answer = assign(
        RangeAssignor(),
        {"t": everywhere},
        a=Subscription(("t",), rack="r2"),
        b=Subscription(("t",), rack="r1"),
    )
    assert answer == {"a": ["t-0"], "b": ["t-1"]}


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
    assert assign(RoundRobinAssignor(), topics, **members) == expected


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
    assert assign(RangeAssignor(), topics, **members) == expected
