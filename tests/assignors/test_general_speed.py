"""The general form stays quick where Kafka takes ten seconds: random subscriptions in a large group."""

from __future__ import annotations

import random
import time

from groupstorm.assignors.consumer.sticky import StickyAssignor
from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.userdata import Subscription


def test_a_thousand_members_with_random_subscriptions() -> None:
    """1,000 x 10,000, about half of the topics each: every partition placed, in seconds at the most."""
    draw = random.Random(15106)
    topics = {f"topic-{number}": TopicMetadata(100) for number in range(100)}
    subscriptions = {
        f"member-{number}": Subscription(tuple(topic for topic in topics if draw.random() < 1 / 2))
        for number in range(1000)
    }
    start = time.thread_time()
    result = StickyAssignor().assign(topics, subscriptions)
    assert time.thread_time() - start < 5
    placed = [tp for partitions in result.partitions.values() for tp in partitions]
    assert len(placed) == len(set(placed)) == 10_000
    assert result.constrained is False
