"""optimal-sticky: against another algorithm, and in time; test_check.py has brute force and rounds."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupstorm.assignors import registry
from groupstorm.assignors.check.properties import optimum, units_of
from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition
from tests.assignors.optimal_oracle import one_by_one, score
from tests.hypothesis_examples import examples
from tests.soaking import one_in

Subscribed = Mapping[str, Sequence[str]]


def draw_group(
    draw: random.Random, members: int, topics: int, partitions: int
) -> tuple[dict[str, int], dict[str, list[str]], dict[tuple[str, int], str]]:
    """Topics, subscriptions and owners; owners anywhere, on topics that they have left as well."""
    counts = {f"t{n}": draw.randint(1, partitions) for n in range(topics)}
    density = draw.choice([0.25, 0.5, 0.9])
    subscribed = {f"m{n}": [t for t in counts if draw.random() < density] for n in range(members)}
    subscribers = {t: [m for m in subscribed if t in subscribed[m]] for t in counts}
    owning = draw.choice([0.0, 0.5, 0.9, 1.0])
    few = draw.random() < 1 / 2  # the first subscriber has most of it: far out of balance
    owner = {}
    for topic, count in counts.items():
        for partition in range(count):
            if draw.random() < owning:
                among = subscribers[topic] if draw.random() < 0.9 else list(subscribed)
                owner[topic, partition] = among[0] if few and among else draw.choice(among or ["gone"])
    return counts, subscribed, owner


def assign(
    counts: Mapping[str, int], subscribed: Subscribed, owner: Mapping[tuple[str, int], str]
) -> Mapping[str, Sequence[TopicPartition]]:
    owned: dict[str, list[TopicPartition]] = {member: [] for member in subscribed}
    for partition, member in owner.items():
        if member in owned:
            owned[member].append(TopicPartition(*partition))
    subscriptions = {
        member: Subscription(tuple(topics), None, tuple(owned[member]), 1)
        for member, topics in subscribed.items()
    }
    topics = {topic: TopicMetadata(count) for topic, count in counts.items()}
    return registry.get("optimal-sticky").assign(topics, subscriptions).partitions


def assert_complete(
    assigned: Mapping[str, Sequence[TopicPartition]], counts: Mapping[str, int], subscribed: Subscribed
) -> list[tuple[str, int]]:
    wanted = sorted((t, p) for t in {t for ts in subscribed.values() for t in ts} for p in range(counts[t]))
    assert sorted(tp for mine in assigned.values() for tp in mine) == wanted
    assert all(tp.topic in subscribed[member] for member, mine in assigned.items() for tp in mine)
    return wanted


@settings(max_examples=examples(150))
@given(st.randoms(use_true_random=False), st.integers(2, 9), st.integers(1, 8))
def test_equals_another_algorithm_on_larger_groups(draw: random.Random, members: int, topics: int) -> None:
    counts, subscribed, owner = draw_group(draw, members, topics, 6)
    assigned = assign(counts, subscribed, owner)
    wanted = assert_complete(assigned, counts, subscribed)
    assert score(assigned, owner) == one_by_one(wanted, subscribed, owner)


def test_what_was_owned_goes_only_after_what_was_not() -> None:
    """m and x each hold one more of a and c than they owned: z takes these two, not two of either's own."""
    subscribed = {"m": ["a", "b"], "w": ["b", "w"], "x": ["b", "c"], "z": ["a", "c", "z"]}
    counts = {"a": 8, "b": 8, "c": 7, "w": 10, "z": 6}
    had = {"a": ("m", 6), "c": ("x", 6), "w": ("w", 10), "z": ("z", 6)}
    owner = {(topic, p): member for topic, (member, count) in had.items() for p in range(count)}
    assigned = assign(counts, subscribed, owner)
    wanted = assert_complete(assigned, counts, subscribed)
    assert score(assigned, owner) == one_by_one(wanted, subscribed, owner) == (381, 28)


@given(st.randoms(use_true_random=False))
def test_the_brute_force_of_check_assignor_agrees(draw: random.Random) -> None:
    counts, subscribed, owner = draw_group(draw, 3, 3, 3)
    wanted = [(t, p) for t in counts for p in range(counts[t]) if any(t in ts for ts in subscribed.values())]
    topics = {topic: TopicMetadata(count) for topic, count in counts.items()}
    subscriptions = {member: Subscription(tuple(listed)) for member, listed in subscribed.items()}
    before = {TopicPartition(*partition): member for partition, member in owner.items()}
    units = units_of(topics, subscriptions, before, {}, None)
    best = optimum(units)
    squares, kept = one_by_one(wanted, subscribed, owner)
    assert (sum(load**2 for load in best.loads), len(units.before) - best.moves) == (squares, kept)


@given(st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_changes_the_answer(draw: random.Random) -> None:
    counts, subscribed, owner = draw_group(draw, 6, 5, 6)
    assigned = assign(counts, subscribed, owner)
    shuffled = {
        m: draw.sample(ts, len(ts)) for m, ts in draw.sample(list(subscribed.items()), len(subscribed))
    }
    mixed = dict(draw.sample(list(owner.items()), len(owner)))
    again = assign(dict(reversed(counts.items())), shuffled, mixed)
    assert {member: again[member] for member in assigned} == assigned
    settled = {(tp.topic, tp.partition): member for member, mine in assigned.items() for tp in mine}
    assert {m: sorted(mine) for m, mine in assign(counts, subscribed, settled).items()} == {
        m: sorted(mine) for m, mine in assigned.items()
    }


@pytest.mark.parametrize("owned_by", one_in(3, ["anybody", "nobody", "the first"]))
def test_a_thousand_members_with_random_subscriptions(owned_by: str) -> None:
    """1,000 x 10,000, about half of the topics each, from nothing and from far out of balance."""
    draw = random.Random(15106)
    counts = {f"topic-{number}": 100 for number in range(100)}
    subscribed = {f"member-{n}": [t for t in counts if draw.random() < 1 / 2] for n in range(1000)}
    owner: dict[tuple[str, int], str] = {}
    if owned_by != "nobody":
        for topic, count in counts.items():
            among = [member for member, topics in subscribed.items() if topic in topics]
            for partition in range(count):
                owner[topic, partition] = among[0] if owned_by == "the first" else draw.choice(among)
    start = time.thread_time()
    assigned = assign(counts, subscribed, owner)
    assert time.thread_time() - start < 5
    assert_complete(assigned, counts, subscribed)
    assert {len(mine) for mine in assigned.values()} == {10}


def test_long_chains_stay_quick() -> None:
    """Every member shares a topic with the next only, and the first of each owned it all."""
    members = 400
    counts = {f"t{n:03}": 1 + n % 7 for n in range(members)}
    names = list(counts)
    subscribed = {f"m{n:03}": names[n : n + 2] for n in range(members)}
    owner = {(t, p): f"m{n:03}" for n, t in enumerate(names) for p in range(counts[t])}
    start = time.thread_time()
    assigned = assign(counts, subscribed, owner)
    assert time.thread_time() - start < 5
    assert_complete(assigned, counts, subscribed)
