"""The leader's door: the quick way gives what the long way gives, with any memory."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.contract import AssignmentResult, MapOrder, RebalanceProtocol, TopicMetadata
from groupstorm.assignors.leader import Member, perform_assignment
from groupstorm.assignors.leadermemory import LeaderMemory
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    UserDataError,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.assignors.groups import MEMBER_IDS

TOPICS = {"t0": 4, "t1": 1, "orders": 6}
OWNED = st.lists(
    st.builds(TopicPartition, st.sampled_from(["t0", "t1", "orders", "gone"]), st.integers(0, 5)), max_size=5
)
SUBSCRIPTIONS = st.fixed_dictionaries(
    {
        "topics": st.lists(st.sampled_from([*TOPICS, "gone"]), min_size=1, unique=True),
        "owned": OWNED,
        "generation": st.integers(-1, 3),
        "rack": st.none() | st.sampled_from(["r1", "r2"]),
        "version": st.integers(0, 3),
        "user_data": st.sampled_from(["none", "own", "garbage"]),
    }
)
GROUPS = st.dictionaries(MEMBER_IDS, SUBSCRIPTIONS, min_size=1, max_size=7)


def as_bytes(name: str, group: dict) -> list[Member]:
    assignor = registry.get(name)
    members: list[Member] = []
    for member, sub in group.items():
        user_data = {
            "none": None,
            "own": assignor.user_data(sub["owned"], sub["generation"]),
            "garbage": b"\x00\x01\x02",
        }[sub["user_data"]]
        subscription = Subscription(
            tuple(sub["topics"]), user_data, tuple(sub["owned"]), sub["generation"], sub["rack"]
        )
        members.append((member, None, encode_subscription(subscription, sub["version"])))
    return members


def the_long_way(name: str, members: list[Member]) -> dict[str, bytes]:
    read = {member: decode_subscription(data) for member, _, data in members}
    subscriptions = {member: read[member] for member in MapOrder.JAVA_HASH.arrange(read)}
    topics = {topic: TopicMetadata(partitions) for topic, partitions in TOPICS.items()}
    result = registry.get(name).assign(topics, subscriptions)
    return {member: encode_assignment(partitions) for member, partitions in result.partitions.items()}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@given(groups=st.lists(GROUPS, min_size=1, max_size=4))
def test_bytes_to_bytes_equals_decode_assign_encode(name: str, groups: list[dict]) -> None:
    """One memory across unrelated rounds; ghosts (t1 has one partition) take the long way themselves."""
    memory = LeaderMemory()
    for group in groups:
        members = as_bytes(name, group)
        assert perform_assignment(registry.get(name), TOPICS, members, memory) == the_long_way(name, members)


def test_a_cooperative_group_over_the_wire() -> None:
    """Two rounds, member by member: what changes hands is missing from the first round's bytes."""
    assignor = registry.get("cooperative-sticky")

    def join(owned: dict[str, tuple[TopicPartition, ...]], generation: int) -> dict[str, list[str]]:
        members = [
            (member, None, encode_subscription(Subscription(("t0",), None, parts, generation)))
            for member, parts in owned.items()
        ]
        answer = perform_assignment(assignor, {"t0": 4}, members)
        return {member: list(map(str, decode_assignment(data).partitions)) for member, data in answer.items()}

    everything = tuple(TopicPartition("t0", partition) for partition in range(4))
    assert join({"a": everything, "b": ()}, 1) == {"a": ["t0-0", "t0-1"], "b": []}
    assert join({"a": everything[:2], "b": ()}, 2) == {"a": ["t0-0", "t0-1"], "b": ["t0-2", "t0-3"]}


def test_a_garbled_subscription_fails_the_leader() -> None:
    """Kafka's leader, too, cannot assign for a group with a member it cannot read."""
    for name in ("sticky", "range"):
        with pytest.raises(UserDataError):
            perform_assignment(registry.get(name), TOPICS, [("a", None, b"\x00\x03\x00")])


def test_members_without_an_entry_get_no_bytes() -> None:
    """A third party's assignor may leave members out; they are no part of the SyncGroup then."""

    class FirstOnly:
        name = "first-only"
        protocols = (RebalanceProtocol.EAGER,)
        needs_equal_subscriptions = False

        def user_data(self, owned: object, generation: int) -> None:
            return None

        def assign(self, topics: Mapping, subscriptions: Mapping) -> AssignmentResult:
            return AssignmentResult({min(subscriptions): [TopicPartition("t0", 0)]})

    members = [(member, None, encode_subscription(Subscription(("t0",)))) for member in "ab"]
    answer = perform_assignment(FirstOnly(), {"t0": 1}, members)
    assert list(answer) == ["a"]
    assert decode_assignment(answer["a"]).partitions == (("t0", 0),)


def test_static_members_keep_their_ranges_by_instance() -> None:
    """KIP-345: a restarted static member has another id, and the same range."""
    subscription = encode_subscription(Subscription(("t0",)))
    first = perform_assignment(
        registry.get("range"), {"t0": 2}, [("x", "i1", subscription), ("y", "i2", subscription)]
    )
    second = perform_assignment(
        registry.get("range"), {"t0": 2}, [("z", "i1", subscription), ("a", "i2", subscription)]
    )
    assert (first["x"], first["y"]) == (second["z"], second["a"])


def test_memory_keeps_no_more_than_two_rounds() -> None:
    memory = LeaderMemory()
    assignor = registry.get("cooperative-sticky")
    for generation in range(20):
        owned = [(TopicPartition("t0", (number + generation) % 4),) for number in range(3)]
        members = [
            (
                f"m{number}-{generation}",
                None,
                encode_subscription(Subscription(("t0",), None, mine, generation)),
            )
            for number, mine in enumerate(owned)
        ]
        perform_assignment(assignor, {"t0": 4}, members, memory)
    assert len(memory._owned) + len(memory._owned_before) <= 2 * 4
    assert len(memory._encoded) == len(memory._encoded_before) == 3
