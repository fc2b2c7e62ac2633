"""What an assignor promises beyond a valid answer, and what ours promise.

Whatever it promises, an assignor gives every partition of a subscribed topic to exactly one member
that subscribes to it, the same answer to the same question, and, if it is cooperative, nothing to
a member before its owner has let go (KIP-429). `groupstorm check-assignor` holds it to that, and
to these promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from groupstorm.assignors.contract import Assignor, TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition


class Balance(StrEnum):
    """By how much the loads of members may differ when the group has settled."""

    TO_ONE = "to-one"
    """Equal subscriptions: by one partition at most."""
    TO_ONE_PER_TOPIC = "to-one-per-topic"
    """Members with equal subscriptions: by one partition of each of their topics at most."""
    BEST = "best"
    """Any subscriptions: sorted loads, the highest first, are as small as can be."""


class CoPartitioning(StrEnum):
    """Which topics have partition n of all of them at one member, where subscriptions are equal."""

    EQUAL_SIZES = "equal-sizes"
    """Those with equally many partitions (RangeAssignor)."""
    ANY_SIZES = "any-sizes"
    """All; balance and moves then count partition numbers, not partitions (KIP-315)."""


#: The partitions that may stay without an owner in this group; the first line of its docstring says when.
LeavesOut = Callable[[Mapping[str, TopicMetadata], Mapping[str, Subscription]], AbstractSet[TopicPartition]]


class Promises(NamedTuple):
    """None and False promise nothing: what is found is told, and fails no check.

    ``fewest_moves``: of all assignments of that balance one that takes the fewest partitions from their
    owners; with equal subscriptions, with ``Balance.BEST`` any. ``any_member_order``: members may
    come in any order. ``leaves_out`` None: nothing stays without an owner.
    """

    balance: Balance | None = None
    fewest_moves: bool = False
    co_partitioned: CoPartitioning | None = None
    any_member_order: bool = False
    leaves_out: LeavesOut | None = None


def beyond_the_smallest_topic(
    topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
) -> set[TopicPartition]:
    """partition numbers that the smallest of the joined topics has not got (KIP-315)"""
    joined = {
        topic
        for subscription in subscriptions.values()
        for topic in subscription.topics
        if topic in topics and topics[topic].partitions
    }
    smallest = min((topics[topic].partitions for topic in joined), default=0)
    return {TopicPartition(topic, n) for topic in joined for n in range(smallest, topics[topic].partitions)}


_STICKY = Promises(Balance.TO_ONE, fewest_moves=True)
_OPTIMAL = Promises(Balance.BEST, fewest_moves=True)

#: Kafka's sticky assignors and those of the documents settle ties by the order of a hash table that is
#: filled in the members' order, so they promise nothing for other orders. The two sketches of
#: KAFKA-12464 promise what their page says, which is more than they keep.
BUILT_IN: Mapping[str, Promises] = {
    "range": Promises(
        Balance.TO_ONE_PER_TOPIC, co_partitioned=CoPartitioning.EQUAL_SIZES, any_member_order=True
    ),
    "roundrobin": Promises(Balance.TO_ONE, any_member_order=True),
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
    "optimal-sticky": _OPTIMAL,
    "optimal-sticky/cooperative": _OPTIMAL,
    "constrained-cooperative-sticky": _STICKY,
    "two-phase-sticky": _STICKY,
    "two-phase-sticky/pseudo-code": _STICKY,
    "two-phase-sticky/java-sketch": _STICKY,
    "stream-join-sticky": Promises(
        Balance.TO_ONE,
        fewest_moves=True,
        co_partitioned=CoPartitioning.ANY_SIZES,
        any_member_order=True,
        leaves_out=beyond_the_smallest_topic,
    ),
}


def promises_of(assignor: Assignor) -> Promises:
    """A plug-in's own ``promises``; ours by their names; none otherwise."""
    declared = getattr(assignor, "promises", None)
    if isinstance(declared, Promises):
        return declared
    return BUILT_IN.get(assignor.name, Promises())
