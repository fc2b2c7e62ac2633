"""The general sticky form is fast in large groups, for which Kafka takes ten seconds."""

from __future__ import annotations

import random
import time

from hypothesis import assume, given
from hypothesis import strategies as st

from groupstorm.assignors.consumer.claims import Claim, settle
from groupstorm.assignors.consumer.general import GeneralAssignment
from groupstorm.assignors.consumer.indexed import PartitionIndex, Question
from groupstorm.assignors.consumer.sticky import StickyAssignor
from groupstorm.assignors.contract import MapOrder, TopicMetadata
from groupstorm.assignors.userdata import Subscription
from tests.assignors.groups import MEMBER_IDS


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


TOPICS = {"t0": TopicMetadata(2), "t1": TopicMetadata(7), "t2": TopicMetadata(12), "t3": TopicMetadata(1)}
MEMBERS = st.dictionaries(
    MEMBER_IDS,
    st.tuples(
        st.lists(st.sampled_from(list(TOPICS)), min_size=1, unique=True),
        st.lists(st.integers(0, 21), max_size=12, unique=True),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=8,
)


@given(MEMBERS)
def test_the_short_cuts_change_nothing(members: dict[str, tuple[list[str], list[int], int]]) -> None:
    """Asking before every step whether all is balanced, as Kafka does, or never: the same lists."""
    index = PartitionIndex(TOPICS)
    claims = []
    for member, (topics, owned, generation) in members.items():
        still = [partition for partition in owned if index.name(partition).topic in topics]
        claims.append(Claim(member, tuple(topics), still, generation, generation, None))
    subscribed = {topic: TOPICS[topic] for topic in TOPICS if any(topic in c.topics for c in claims)}
    assume(len(subscribed) == len(TOPICS))
    answers = []
    for literally in (True, False):
        form = GeneralAssignment(
            Question(index, TOPICS, claims, range(len(claims))),
            settle(claims, index.size),
            None,
            MapOrder.JAVA_HASH,
            literally=literally,
            refuses_circles=True,
        )
        form.run()
        answers.append(form.assigned)
    assert answers[0] == answers[1]
