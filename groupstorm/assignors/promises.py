"""The promises of an assignor beyond a valid answer, and those of our assignors.

Every assignor has to give each partition of a subscribed topic to exactly one member that subscribes to it,
and to give the same answer to the same question. A cooperative assignor must not grant a partition before
its owner has revoked it (KIP-429). `groupstorm check-assignor` checks these rules and the promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from groupstorm.assignors.contract import Assignor, TopicMetadata
from groupstorm.assignors.userdata import Subscription, TopicPartition


class Balance(StrEnum):
    """The difference of loads that is allowed after the group has settled."""

    TO_ONE = "to-one"
    """Equal subscriptions: by one partition at most."""
    TO_ONE_PER_TOPIC = "to-one-per-topic"
    """Members with equal subscriptions: by one partition of each of their topics at most."""
    BEST = "best"
    """Any subscriptions: the sorted loads, the highest first, are as small as possible."""


class CoPartitioning(StrEnum):
    """The topics of which one member has partition n, with equal subscriptions."""

    EQUAL_SIZES = "equal-sizes"
    """The topics with equally many partitions (RangeAssignor)."""
    ANY_SIZES = "any-sizes"
    """All topics; balance and moves then count partition numbers, not partitions (KIP-315)."""


#: The partitions that may stay without an owner in this group; its docstring describes them in one line.
LeavesOut = Callable[[Mapping[str, TopicMetadata], Mapping[str, Subscription]], AbstractSet[TopicPartition]]


class Promises(NamedTuple):
    """None and False promise nothing: a violation is reported, and fails no check.

    ``fewest_moves``: of all assignments of that balance, one that takes the fewest partitions from their
    owners; with equal subscriptions, and with ``Balance.BEST`` for any. ``any_member_order``: the answer is
    the same for any order of members. ``leaves_out`` None: every partition has an owner.
    """

    balance: Balance | None = None
    fewest_moves: bool = False
    co_partitioned: CoPartitioning | None = None
    any_member_order: bool = False
    leaves_out: LeavesOut | None = None


def beyond_the_smallest_topic(
    topics: Mapping[str, TopicMetadata], subscriptions: Mapping[str, Subscription]
) -> set[TopicPartition]:
    """partition numbers that the smallest joined topic does not have (KIP-315)"""
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

#: Kafka's sticky assignors and those of the documents break ties by the order of a hash table that is filled
#: in the members' order, so they promise nothing for other orders. The two sketches of KAFKA-12464 promise
#: what their page says, and break it.
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
    """A plug-in's own ``promises``; those of our assignors by name; otherwise none."""
    declared = getattr(assignor, "promises", None)
    if isinstance(declared, Promises):
        return declared
    return BUILT_IN.get(assignor.name, Promises())
