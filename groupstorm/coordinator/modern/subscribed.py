"""A group whose members subscribe to topics by name: what consumer and share groups have in common.

Kafka: ModernGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.assignors.server import Target
from groupstorm.coordinator.modern.group import FIRST_EPOCH, M, ModernGroup
from groupstorm.coordinator.records import Record
from groupstorm.coordinator.shard import Shard
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import hash_order
from groupstorm.turns import Turns

#: Topic -> how many members name it, how many resolved regular expressions match it.
SubscribedTopics = dict[str, tuple[int, int]]


def hash_set(names: Iterable[str]) -> tuple[str, ...]:
    """The names in the order of a ``HashSet`` made of them."""
    listed = list(names)
    return tuple(hash_order(listed, initial_capacity=max(int(len(listed) / 0.75) + 1, 16)))


def named(topics: Iterable[str] | None) -> dict[str, Any]:
    """The fields of a member that names these topics; None: it says nothing of them."""
    return {} if topics is None else {"topics": frozenset(topics), "topics_in_order": hash_set(topics)}


def count_names(topics: SubscribedTopics, names: Iterable[str], by: int) -> None:
    """Count the topics that a member names, in place."""
    count_topics(topics, names, by, 0)


def count_topics(topics: SubscribedTopics, counted: Iterable[str], names: int, matches: int) -> None:
    """Count topics up or down, in place; a topic that nobody counts is no entry."""
    first = names, matches
    if not topics and max(first) > 0:
        topics.update(dict.fromkeys(counted, first))
        return
    for topic in counted:
        before = topics.get(topic)
        if before is None and max(first) > 0:
            topics[topic] = first
            continue
        before = before or (0, 0)
        after = before[0] + names, before[1] + matches
        if after[0] > 0 or after[1] > 0:
            topics[topic] = after
        else:
            topics.pop(topic, None)


def names_alone_are_equal(topics: SubscribedTopics, members: int) -> bool:
    """Whether each of the topics is named by all members (ModernGroup.subscriptionType)."""
    return all(names == members for names, _ in topics.values())


class MemberTarget(NamedTuple):
    """One member's target and the epoch for which it was computed."""

    epoch: int
    partitions: Target


class SubscribedGroup(ModernGroup[M, Target]):
    """The state of one group, and the counts of its subscriptions."""

    __slots__ = ("epoch", "metadata_hash", "refresh_epoch", "refresh_ms", "subscribed")

    epoch: int

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.subscribed: SubscribedTopics = {}
        #: When the subscribed topics are looked at again, and the epoch that a failed write took back.
        self.refresh_ms, self.refresh_epoch = 0, 0

    # to read

    def target(self, member_id: str) -> Target:
        """The member's target; empty if it has none yet."""
        return self.targets.get(member_id) or {}

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed

    def names_of(self, assigned: Mapping[UUID, Any], topics: Topics) -> tuple[str, ...]:
        named = [
            (name, number)
            for topic, numbers in assigned.items()
            if (name := topics.name(topic)) is not None
            for number in numbers
        ]
        return tuple([f"{name}-{number}" for name, number in sorted(named)])

    def subscribed_without(self, *named: Iterable[str]) -> SubscribedTopics:
        """The topics as if some members did not name these."""
        topics = dict(self.subscribed)
        for topics_of_member in named:
            count_names(topics, topics_of_member, -1)
        return topics

    def is_refresh_due(self, now_ms: int) -> bool:
        """Whether the group has to look at its topics (ModernGroup.hasMetadataExpired)."""
        return now_ms >= self.refresh_ms or self.epoch < self.refresh_epoch

    # to change

    def facts_of(self, member: M) -> Any:
        facts = super().facts_of(member)
        return facts._replace(topics=tuple(sorted(facts.topics)))

    def with_facts(self, member: M, facts: Any) -> M:
        return replace(member, **(facts._asdict() | named(facts.topics)))

    def request_refresh(self) -> None:
        """The next heartbeat of any member looks at the subscribed topics."""
        self.refresh_ms, self.refresh_epoch = 0, 0

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.set_fields(epoch=epoch, metadata_hash=metadata_hash)


def last_target(group: SubscribedGroup[M], member: M) -> Target:
    """The member's present target; a static member has that of its predecessor."""
    if member.instance is None:
        return group.target(member.member_id)
    predecessor = group.static_members.get(member.instance)
    return {} if predecessor is None else group.target(predecessor)


def update_target(
    shard: Shard,
    group: SubscribedGroup[M],
    epoch: int,
    member: M,
    assign: Turns[dict[str, Target]],
    records: list[Record],
) -> Turns[MemberTarget]:
    """The member's target, computed anew by ``assign`` if the group's ``epoch`` is later than the last one's.

    At most once per assignment interval (`group.consumer.assignment.interval.ms`, `group.share...`): until
    then the old target counts. Kafka: GroupMetadataManager.maybeUpdateTargetAssignment,
    TargetAssignmentBuilder.
    """
    present = MemberTarget(group.assignment_epoch, last_target(group, member))
    if group.assignment_epoch >= epoch:
        return present
    interval_ms = shard.group_options.modern(group.kind, group.name).assignment_interval_ms
    if interval_ms > 0 and not group.may_assign(shard.now_ms, interval_ms):
        return present
    targets = yield from assign
    records += [
        group.types.target(group.name, member_id, target)
        for member_id, target in targets.items()
        if target is not group.targets.get(member_id)
    ]
    records.append(group.types.target_epoch(group.name, epoch, shard.now_ms))
    return MemberTarget(epoch, targets[member.member_id])
