"""The leader: bytes in, bytes out. The way by number gives the bytes of the way by name, with any memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.contract import (
    AssignmentRefused,
    AssignmentResult,
    Assignor,
    MapOrder,
    RebalanceProtocol,
    TopicMetadata,
)
from groupstorm.assignors.leader import JoinedMember, LeaderMemory, perform_assignment
from groupstorm.assignors.leader.assignment import assign_by_name
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    decode_assignment,
    encode_subscription,
)
from tests.assignors.groups import MEMBER_IDS
from tests.hypothesis_examples import examples

TOPICS = {"t0": 4, "t1": 1, "orders": 6}
RACKS = [frozenset({"r1"}), frozenset({"r2"}), frozenset({"r1", "r2"})]
#: The topics of a round: as above, one grown and one gone, with racks, none.
TOPICS_BY_ROUND: list[dict[str, TopicMetadata]] = [
    {topic: TopicMetadata(count) for topic, count in TOPICS.items()},
    {"t0": TopicMetadata(6), "t1": TopicMetadata(1)},
    {
        topic: TopicMetadata(count, tuple(RACKS[number % 3] for number in range(count)))
        for topic, count in TOPICS.items()
    },
    {},
]
OWNED = st.lists(
    st.builds(TopicPartition, st.sampled_from(["t0", "t1", "orders", "gone"]), st.integers(0, 5)), max_size=5
)
SUBSCRIPTIONS = st.fixed_dictionaries(
    {
        "topics": st.lists(st.sampled_from([*TOPICS, "gone"]), min_size=1, unique=True),
        "owned": OWNED,
        "generation": st.integers(-1, 3),
        "rack": st.none() | st.sampled_from(["r1", "r2"]),
        "instance": st.none() | st.sampled_from(["i1", "i2", "i3"]),
        "version": st.integers(0, 3),
        "user_data": st.sampled_from(["none", "own", "garbage"]),
    }
)
GROUPS = st.dictionaries(MEMBER_IDS, SUBSCRIPTIONS, min_size=1, max_size=7)


ROUNDS = st.lists(st.tuples(GROUPS, st.sampled_from(TOPICS_BY_ROUND)), min_size=1, max_size=4)


def as_bytes(assignor: Assignor, group: dict) -> list[JoinedMember]:
    members: list[JoinedMember] = []
    for member, sub in group.items():
        user_data = {
            "none": None,
            "own": assignor.user_data(sub["owned"], sub["generation"]),
            "garbage": b"\x00\x01\x02",
        }[sub["user_data"]]
        subscription = Subscription(
            tuple(sub["topics"]), user_data, tuple(sub["owned"]), sub["generation"], sub["rack"]
        )
        members.append((member, sub["instance"], encode_subscription(subscription, sub["version"])))
    return members


def outcome(assign: Callable[[], dict[str, bytes]]) -> object:
    """The assignments in their order, or the refusal."""
    try:
        return list(assign().items())
    except AssignmentRefused as refused:
        return refused.error, refused.message


@pytest.mark.slow
@pytest.mark.parametrize("bug_compat", [False, True])
@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_a_leader_with_any_memory_answers_as_by_name(name: str, bug_compat: bool) -> None:
    """One memory across unrelated rounds; some members own partitions that do not exist (t1 has one)."""

    @settings(max_examples=examples(60))
    @given(rounds=ROUNDS, order=st.sampled_from(MapOrder))
    def check(rounds: list[tuple[dict, dict[str, TopicMetadata]]], order: MapOrder) -> None:
        memory = LeaderMemory()
        assignor = registry.get(name, order=order, bug_compat=bug_compat)
        for group, topics in rounds:
            members = as_bytes(assignor, group)
            expected = outcome(lambda: assign_by_name(assignor, topics, members))  # noqa: B023
            found = outcome(lambda: perform_assignment(assignor, topics, members, memory))  # noqa: B023
            assert found == expected

    check()


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
