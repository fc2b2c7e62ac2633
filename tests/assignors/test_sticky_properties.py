"""Properties of the sticky assignors whatever the group: completeness, balance, stickiness, safety."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.consumer.sticky import CooperativeStickyAssignor, StickyAssignor
from groupstorm.assignors.contract import MapOrder, TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition
from tests.assignors.constrained_oracle import constrained
from tests.assignors.groups import MEMBER_IDS, TOPICS, RebalancingGroup, sizes

KAFKAS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
STICKY = ["sticky", "cooperative-sticky"]
#: Rounds after which a change has to be over, by assignor and whether subscriptions are equal.
ROUNDS = {
    ("sticky", True): 1,
    ("sticky", False): 1,
    ("cooperative-sticky", True): 2,
    ("cooperative-sticky", False): 6,
}
Change = tuple[str, str, random.Random]
CHANGES = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "nothing"]), MEMBER_IDS, st.randoms(use_true_random=False)),
    max_size=6,
)


def topics_for(topics: Mapping[str, int], shuffle: random.Random, equal: bool) -> list[str]:
    listed = sorted(topics)
    return listed if equal else sorted(shuffle.sample(listed, shuffle.randint(1, len(listed))))


def apply(group: RebalancingGroup, change: Change, topics: Mapping[str, int], equal: bool) -> None:
    kind, member, shuffle = change
    if kind == "join":
        group.join({member: topics_for(topics, shuffle, equal)})
    elif kind == "leave" and len(group.subscribed) > 1:
        group.leave(min(group.subscribed))


@pytest.mark.parametrize("name", KAFKAS)
@given(
    topics=TOPICS, members=st.sets(MEMBER_IDS, min_size=1, max_size=9), equal=st.booleans(), data=st.data()
)
def test_every_partition_has_exactly_one_owner_who_subscribes(
    name: str, topics: dict[str, int], members: set[str], equal: bool, data: st.DataObject
) -> None:
    group = RebalancingGroup(registry.get(name), topics)
    shuffle = data.draw(st.randoms(use_true_random=False))
    group.join({member: topics_for(topics, shuffle, equal) for member in sorted(members)})
    group.step()
    owners = group.owners()
    assert {tp: len(found) for tp, found in owners.items()} == dict.fromkeys(group.wanted(), 1)
    assert all(tp.topic in group.subscribed[found[0]] for tp, found in owners.items())


@pytest.mark.parametrize("name", STICKY)
@given(topics=TOPICS, first=st.sets(MEMBER_IDS, min_size=1, max_size=6), changes=CHANGES, equal=st.booleans())
def test_nothing_is_granted_before_it_is_let_go_and_the_group_settles(
    name: str, topics: dict[str, int], first: set[str], changes: list[Change], equal: bool
) -> None:
    """A cooperative group is never told that two members own a partition.

    With equal subscriptions it settles in two rounds. With unequal ones Kafka may move more once it
    sees what was let go, and takes a third (golden/three-rounds).
    """
    group = RebalancingGroup(registry.get(name), topics)
    group.join({member: sorted(topics) for member in sorted(first)})
    group.step()
    for change in changes:
        apply(group, change, topics, equal)
        rounds = 0
        while rounds == 0 or group.is_incomplete():
            rounds += 1
            still_owned = group.still_owned()
            result = group.step()
            if name == "cooperative-sticky":
                for member, partitions in result.partitions.items():
                    assert all(still_owned.get(tp, member) == member for tp in partitions)
            assert max(map(len, group.owners().values())) == 1
            assert rounds <= ROUNDS[name, equal]
        settled = {member: set(partitions) for member, partitions in group.owned.items()}
        group.step()
        assert {member: set(partitions) for member, partitions in group.owned.items()} == settled


@pytest.mark.parametrize("name", STICKY)
@given(topics=TOPICS, members=st.lists(MEMBER_IDS, min_size=2, max_size=9, unique=True))
def test_equal_subscriptions_are_balanced_and_moves_minimal(
    name: str, topics: dict[str, int], members: list[str]
) -> None:
    """One member more: nobody differs by more than one, and only the newcomer's share moves."""
    group = RebalancingGroup(registry.get(name), topics)
    group.join({member: sorted(topics) for member in members[:-1]})
    before = group.step().partitions
    group.join({members[-1]: sorted(topics)})
    group.step()
    after = group.step().partitions
    assert sizes(after)[-1] - sizes(after)[0] <= 1
    total, count = sum(topics.values()), len(members)
    floor, extras = divmod(total, count)
    kept_at_least = [min(len(before[member]), floor) for member in members[:-1]]
    more = sum(len(before[member]) > floor for member in members[:-1])
    least_moves = total - sum(kept_at_least) - min(more, extras)
    moved = sum(len(set(before[member]) - set(after[member])) for member in members[:-1])
    assert moved == least_moves


@pytest.mark.parametrize("name", STICKY)
@given(topics=TOPICS, members=st.lists(MEMBER_IDS, min_size=2, max_size=9, unique=True), data=st.data())
def test_unequal_subscriptions_leave_no_move_that_would_help(
    name: str, topics: dict[str, int], members: list[str], data: st.DataObject
) -> None:
    group = RebalancingGroup(registry.get(name), topics)
    shuffle = data.draw(st.randoms(use_true_random=False))
    group.join({member: topics_for(topics, shuffle, False) for member in members})
    assigned = group.step().partitions
    for partitions in assigned.values():
        for partition in partitions:
            for other in members:
                if partition.topic in group.subscribed[other]:
                    assert len(partitions) <= len(assigned[other]) + 1


@given(
    topics=TOPICS,
    members=st.lists(MEMBER_IDS.filter(str.isascii), min_size=1, max_size=9, unique=True),
    data=st.data(),
)
def test_the_quick_form_equals_the_plain_one(
    topics: dict[str, int], members: list[str], data: st.DataObject
) -> None:
    """Arbitrary consistent ownership, some partitions claimed twice; lists in order."""
    every = [TopicPartition(topic, p) for topic in sorted(topics) for p in range(topics[topic])]
    owner = st.none() | st.sampled_from(members)
    owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for partition in every:
        found = data.draw(owner)
        if found is not None:
            owned[found].append(partition)
    order = MapOrder.JAVA_HASH.arrange(members)
    subscriptions = {
        member: Subscription(tuple(sorted(topics)), None, tuple(owned[member]), 3) for member in order
    }
    result = CooperativeStickyAssignor().assign(
        {t: TopicMetadata(n) for t, n in topics.items()}, subscriptions
    )
    assigned, transferring = constrained(topics, {member: owned[member] for member in order})
    withheld = set(transferring)
    assert result.partitions == {
        member: [tp for tp in partitions if tp not in withheld] for member, partitions in assigned.items()
    }
    assert result.transferring == {
        member: sorted(tp for tp, to in transferring.items() if to == member)
        for member in set(transferring.values())
    }


@pytest.mark.parametrize("order", list(MapOrder))
@given(topics=TOPICS, members=st.lists(MEMBER_IDS, min_size=1, max_size=9, unique=True), data=st.data())
def test_the_same_question_has_the_same_answer(
    order: MapOrder, topics: dict[str, int], members: list[str], data: st.DataObject
) -> None:
    """An assignor keeps nothing; in sorted order the answer does not depend on who was named first."""
    shuffle = data.draw(st.randoms(use_true_random=False))
    known = {topic: TopicMetadata(partitions) for topic, partitions in topics.items()}
    subscriptions = {member: Subscription(tuple(topics_for(topics, shuffle, False))) for member in members}
    assignor = StickyAssignor(order)
    once = assignor.assign(known, subscriptions)
    assert assignor.assign(known, subscriptions) == once
    if order is MapOrder.SORTED:
        backwards = dict(reversed(subscriptions.items()))
        assert assignor.assign(known, backwards).partitions == once.partitions


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_a_claim_of_a_higher_generation_wins(seed: int) -> None:
    """KAFKA-14639: conflicts are settled partition by partition."""
    partition = TopicPartition("t", seed % 3)
    subscriptions = {
        "old": Subscription(("t",), None, (partition,), 3),
        "new": Subscription(("t",), None, (partition,), 4),
    }
    for names in (("old", "new"), ("new", "old")):
        result = CooperativeStickyAssignor().assign(
            {"t": TopicMetadata(4)}, {name: subscriptions[name] for name in names}
        )
        assert partition in result.partitions["new"]
        assert partition not in result.partitions["old"]
