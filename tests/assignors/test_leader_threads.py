"""Leaders of different groups on different threads: each is answered as if it were alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from groupstorm.assignors import registry
from groupstorm.assignors.leader import JoinedMember, LeaderMemory, perform_assignment
from groupstorm.assignors.userdata import (
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_subscription,
)

_CALLS = 60
_GROUPS = ("red", "blue")


@pytest.fixture(autouse=True)
def frequent_thread_switches() -> Iterator[None]:
    """A thread is interrupted every ten microseconds, so within every call."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _group(color: str, call: int) -> tuple[dict[str, int], list[JoinedMember]]:
    """A group with topics and members of its own; a member owned other partitions before each call."""
    topics = {f"{color}-{number}": 8 for number in range(4)}
    members: list[JoinedMember] = []
    for number in range(12):
        owned = tuple(TopicPartition(topic, (number + call) % 8) for topic in topics)
        subscription = Subscription(tuple(topics), None, owned, call)
        members.append((f"{color}-member-{number}", None, encode_subscription(subscription)))
    return topics, members


def _in_two_threads(work: Callable[[str], list[dict[str, bytes]]]) -> list[list[dict[str, bytes]]]:
    barrier = Barrier(len(_GROUPS))

    def start(color: str) -> list[dict[str, bytes]]:
        barrier.wait(timeout=30)
        return work(color)

    with ThreadPoolExecutor(len(_GROUPS)) as threads:
        return list(threads.map(start, _GROUPS))


@pytest.mark.parametrize("name", ["range", "sticky", "cooperative-sticky", "optimal-sticky"])
def test_two_groups_led_from_two_threads_keep_their_own_assignments(name: str) -> None:
    """As consumers lead: every consumer keeps the memory of its own group."""
    assignor = registry.get(name)

    def lead(color: str) -> list[dict[str, bytes]]:
        memory = LeaderMemory()
        return [perform_assignment(assignor, *_group(color, call), memory) for call in range(_CALLS)]

    alone = [lead(color) for color in _GROUPS]
    assert _in_two_threads(lead) == alone


def test_the_cache_of_topic_names_may_overflow_in_two_threads() -> None:
    """`userdata.wire` keeps some thousand names for all threads; a name never depends on the cache."""
    topics = {color: [f"{color}-{number}" for number in range(3000)] for color in _GROUPS}
    expected = {color: set(names) for color, names in topics.items()}
    written = {color: encode_subscription(Subscription(tuple(names))) for color, names in topics.items()}

    def read(color: str) -> list[dict[str, bytes]]:
        for _ in range(5):
            assert set(decode_subscription(written[color]).topics) == expected[color]
        return []

    assert _in_two_threads(read) == [[], []]
