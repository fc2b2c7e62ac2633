"""Assignors of one's own: rendezvous hashing, eager as a function and cooperative as an object.

Every partition number goes to the member whose name scores highest with it, so that members come and
go without anything else moving, and partition n of all topics is in one place. Loads are uneven: this
promises no balance.

    groupstorm check-assignor examples.rendezvous:rendezvous
    groupstorm run custom-assignor-lab --set partition.assignment.strategy=examples.rendezvous:cooperative
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from groupstorm.assignors.contract import TopicMetadata
from groupstorm.assignors.promises import CoPartitioning, Promises
from groupstorm.assignors.userdata import Subscription, TopicPartition

Topics = Mapping[str, TopicMetadata]
Members = Mapping[str, Subscription]


def rendezvous(topics: Topics, members: Members) -> dict[str, list[TopicPartition]]:
    """Topics that exist with their partitions, members with what they subscribed to: who gets what."""
    given: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic, metadata in topics.items():
        takers = [member for member, subscription in members.items() if topic in subscription.topics]
        for number in range(metadata.partitions if takers else 0):
            taker = max(takers, key=lambda member: (_score(member, number), member))
            given[taker].append(TopicPartition(topic, number))
    return given


def _score(member: str, number: int) -> bytes:
    """The same in every process: Python's own ``hash`` of a text is not."""
    return blake2b(f"{member}/{number}".encode(), digest_size=8).digest()


_PROMISES = Promises(co_partitioned=CoPartitioning.ANY_SIZES, any_member_order=True)
rendezvous.promises = _PROMISES  # type: ignore[attr-defined]  # functions declare in attributes


class Cooperative:
    """The same for cooperative groups: what somebody else still owns is withheld until it is given up."""

    name = "rendezvous-cooperative"
    protocols = ("cooperative",)
    promises = _PROMISES

    def assign(self, topics: Topics, members: Members) -> dict[str, list[TopicPartition]]:
        """Members still own what they say in ``owned`` while the group rebalances."""
        owner = {partition: member for member, told in members.items() for partition in told.owned}
        return {
            member: [partition for partition in partitions if owner.get(partition, member) == member]
            for member, partitions in rendezvous(topics, members).items()
        }


cooperative = Cooperative()
