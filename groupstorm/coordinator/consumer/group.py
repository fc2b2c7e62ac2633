"""A consumer group (ConsumerGroup): its members, epochs, targets, subscriptions, and counts for decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.consumer.member import (
    ConsumerCurrentRecord,
    ConsumerEpochRecord,
    ConsumerMember,
    ConsumerMemberRecord,
    ConsumerRecord,
    ConsumerRegexRecord,
    ConsumerTargetEpochRecord,
    ConsumerTargetRecord,
    CurrentAssignment,
    MemberSubscription,
)
from groupstorm.coordinator.errors import CoordinatorFault
from groupstorm.coordinator.groups import GroupType
from groupstorm.coordinator.modern.group import entries, merge, put
from groupstorm.coordinator.modern.member import MemberState
from groupstorm.coordinator.modern.subscribed import (
    SubscribedGroup,
    SubscribedTopics,
    count_names,
    count_topics,
    hash_set,
    names_alone_are_equal,
)
from groupstorm.coordinator.records import WingTypes
from groupstorm.coordinator.topics import Topics
from groupstorm.javahash import JavaHashMap, TimelineHashMap

#: No member holds the partition.
NO_EPOCH = -1


class ConsumerGroupState(StrEnum):
    """A group's state, under the names that ConsumerGroupDescribe uses. It follows from the members."""

    #: No members; committed offsets may remain.
    EMPTY = "Empty"
    #: The group has changed since the targets were computed.
    ASSIGNING = "Assigning"
    #: Members are on their way to their targets.
    RECONCILING = "Reconciling"
    #: Every member has its target.
    STABLE = "Stable"


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched; ``version``: of the cluster's topics."""

    topics: frozenset[str]
    version: int
    resolved_at_ms: int
    in_order: tuple[str, ...] = ()


def count_matches(topics: SubscribedTopics, resolved: ResolvedRegex | None, by: int) -> None:
    """Count the topics that a resolved expression matches, in place."""
    count_topics(topics, resolved.topics if resolved is not None else (), 0, by)


def count_one(counts: dict[str, int], key: str | None, by: int) -> None:
    """Count a key up or down, in place; a count of 0 is no entry. None and "" are no keys."""
    if not key:
        return
    after = counts.get(key, 0) + by
    if after > 0:
        counts[key] = after
    else:
        counts.pop(key, None)


def is_homogeneous(regexes: dict[str, int], topics: SubscribedTopics, members: int) -> bool:
    """Whether all members subscribe to the same topics (ConsumerGroup.subscriptionType)."""
    if not regexes:
        return names_alone_are_equal(topics, members)
    if next(iter(regexes.values())) != members:
        return False
    return all(matches == 1 and names == 0 for names, matches in topics.values())


class ConsumerGroup(SubscribedGroup[ConsumerMember]):
    """The state of one group, and what can be read from it directly."""

    kind = GroupType.CONSUMER
    types = WingTypes(
        ConsumerMember,
        MemberSubscription,
        CurrentAssignment,
        ConsumerMemberRecord,
        ConsumerCurrentRecord,
        ConsumerTargetRecord,
        ConsumerTargetEpochRecord,
        ConsumerEpochRecord,
    )

    def __init__(self, name: str, *, frees_instances: bool = False) -> None:
        super().__init__(name)
        #: A member that takes another instance id gives its old one up, as in Kafka 4.4.0.
        self.frees_instances = frees_instances
        #: Topic id -> partition -> the epoch of the member that holds it, be it assigned or being revoked.
        self.partition_epochs: dict[UUID, dict[int, int]] = {}
        #: Regular expression -> how many members subscribe by it.
        self.regexes: dict[str, int] = {}
        self.resolved: TimelineHashMap[str, ResolvedRegex] = TimelineHashMap()
        #: The number of members that speak the classic protocol.
        self.classic_members = 0
        self._classic_protocols: dict[str, int] = {}
        self._assignors: TimelineHashMap[str, int] = TimelineHashMap()
        #: Member epoch -> how many members are stable at it.
        self._stable_at: dict[int, int] = {}
        self._is_homogeneous = True
        #: Whether the members' subscriptions are as they were when `_is_homogeneous` was computed.
        self._counted = True

    @classmethod
    def new(cls, name: str, compatibility: Compatibility) -> ConsumerGroup:
        return cls(name, frees_instances=compatibility.is_4_4)

    # to read

    @property
    def state(self) -> ConsumerGroupState:
        """Follows from the members and the epochs (ConsumerGroup.maybeUpdateGroupState)."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if self._stable_at.get(self.assignment_epoch, 0) < len(self.members):
            return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribed to the same topics when a member changed last."""
        return self._is_homogeneous

    def partition_epoch(self, topic: UUID, partition: int) -> int:
        """The epoch of the member that holds the partition; `NO_EPOCH` if nobody does."""
        return self.partition_epochs.get(topic, {}).get(partition, NO_EPOCH)

    def assigned_at(self, member: ConsumerMember, topics: Topics, topic: str, number: int) -> int | None:
        topic_id = topics.topic_id(topic)
        return None if topic_id is None else member.assigned_at(topic_id, number)

    def preferred_assignor(
        self, old: ConsumerMember | None = None, new: ConsumerMember | None = None
    ) -> str | None:
        """The assignor that most members name, as if ``old`` were replaced by ``new``; ties go to the first
        in Java's order (ConsumerGroup.computePreferredServerAssignor)."""
        counts: JavaHashMap[str, int] = JavaHashMap.copy_of(dict(self._assignors.items()))
        for member, by in ((old, -1), (new, 1)):
            if member is not None and member.assignor is not None:
                counts.compute_if_absent(member.assignor, int)
                counts.put(member.assignor, counts[member.assignor] + by)
                if counts[member.assignor] <= 0:
                    counts.remove(member.assignor)
        return max(counts.items(), key=lambda item: item[1], default=(None, 0))[0]

    def supports_classic(self, protocol_type: str, protocols: set[str]) -> bool:
        """Whether a member with these protocols may join (ConsumerGroup.supportsClassicProtocols)."""
        if protocol_type != "consumer":
            return False
        if not self.members:
            return bool(protocols)
        return any(self._classic_protocols.get(name, 0) == self.classic_members for name in protocols)

    # to change

    def take_own(self, record: Any, now_ms: int) -> None:
        match record:
            case ConsumerEpochRecord(_, int(epoch), metadata_hash):
                self.set_epoch(epoch, metadata_hash)
            case ConsumerRegexRecord(_, regex, topics, version, at_ms):
                resolved = None
                if topics is not None:
                    resolved = ResolvedRegex(frozenset(topics), version, at_ms, hash_set(topics))
                self.set_resolved(regex, resolved)

    def tombstones(self) -> list[ConsumerRecord]:
        return self.tombstones_under({})

    def tombstones_under(self, names: Mapping[str, str]) -> list[ConsumerRecord]:
        """The records that delete the group; ``names``: of members that have another id in the log."""
        return [
            *self.tombstones_of_members([names.get(one, one) for one in self.members]),
            *(ConsumerRegexRecord(self.name, regex, None) for regex in self.resolved),
            ConsumerEpochRecord(self.name, None),
        ]

    def bump_without(self, members: Sequence[ConsumerMember], topics: Topics) -> list[ConsumerRecord]:
        """Regular expressions that nobody but these members subscribes to go, too."""
        counts = Counter(member.regex for member in members if member.regex)
        regexes = [regex for regex, count in counts.items() if self.regexes.get(regex, 0) == count]
        left = self.subscribed_without(*(member.topics for member in members))
        for regex in regexes:
            count_matches(left, self.resolved.get(regex), -1)
        bump = ConsumerEpochRecord(self.name, self.epoch + 1, topics.hash_of(left))
        return [*(ConsumerRegexRecord(self.name, regex, None) for regex in regexes), bump]

    def set_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Set the topics of a regular expression, or forget them (None)."""
        before = self.resolved.get(regex)
        self.undo.append(lambda: self._put_resolved(regex, before))
        self._put_resolved(regex, resolved)

    def _put_resolved(self, regex: str, resolved: ResolvedRegex | None) -> None:
        count_matches(self.subscribed, self.resolved.remove(regex), -1)
        count_matches(self.subscribed, resolved, 1)
        if resolved is not None:
            self.resolved.put(regex, resolved)
        self._counted = False

    def set_member(self, member_id: str, member: ConsumerMember | None) -> None:
        """Add, replace or remove (None) a member, and count it.

        `CoordinatorFault` if it would hold a partition that another member holds at the same epoch or a
        later one (KAFKA-16147); the group is unchanged then.
        """
        before = self.members.get(member_id)
        epochs = self._moved_epochs(before, member)
        held = {
            topic: entries(table, moved)
            for topic, moved in epochs.items()
            if (table := self.partition_epochs.get(topic))
        }
        homogeneous = self._is_homogeneous
        known = [one.instance for one in (before, member) if one is not None and one.instance is not None]
        instances = entries(self.static_members, known)

        def back() -> None:
            self.members.remove(member_id)
            self._put_member(member_id, member, before)
            for topic in epochs:
                if topic in held:
                    merge(self.partition_epochs.setdefault(topic, {}), held[topic])
                else:
                    self.partition_epochs.pop(topic, None)
            merge(self.static_members, instances)
            self._is_homogeneous, self._counted = homogeneous, False

        self.undo.append(back)
        self._put_member(member_id, before, member)
        self._put_epochs(epochs)
        if before is not None and before.instance is not None and (member is None or self.frees_instances):
            self.static_members.pop(before.instance, None)
        if member is not None and member.instance is not None:
            self.static_members[member.instance] = member_id
        if not self._counted:
            self._is_homogeneous = is_homogeneous(self.regexes, self.subscribed, len(self.members))
            self._counted = True

    def _moved_epochs(
        self, before: ConsumerMember | None, after: ConsumerMember | None
    ) -> dict[UUID, dict[int, int | None]]:
        """The entries of `partition_epochs` that change, None for those that go."""
        if (
            before is not None
            and after is not None
            and before.epoch == after.epoch
            and before.assigned is after.assigned
            and before.revoking is after.revoking
        ):
            return {}
        moved: dict[UUID, dict[int, int | None]] = {}
        if before is not None and (before.assigned or before.revoking):
            for topic, numbers in (*before.assigned.items(), *before.revoking.items()):
                known = self.partition_epochs.get(topic, {})
                goes = [number for number in numbers if known.get(number) == before.epoch]
                moved.setdefault(topic, {}).update(dict.fromkeys(goes))
        if after is not None:
            for topic, numbers in (*after.assigned.items(), *after.revoking.items()):
                known = self.partition_epochs.get(topic, {})
                if not known and topic not in moved:
                    moved[topic] = dict.fromkeys(numbers, after.epoch)
                    continue
                epochs = moved.setdefault(topic, {})
                for number in numbers:
                    held = epochs[number] if number in epochs else known.get(number)
                    if held is not None and held >= after.epoch:
                        raise CoordinatorFault(
                            f"{topic}-{number} cannot have epoch {after.epoch}: it is still owned at {held}"
                        )
                    epochs[number] = after.epoch
        return moved

    def _put_epochs(self, moved: dict[UUID, dict[int, int | None]]) -> None:
        for topic, epochs in moved.items():
            merge(self.partition_epochs.setdefault(topic, {}), epochs)

    def _put_member(self, member_id: str, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        put(self.members, member_id, new)
        if old is None or new is None or old.topics != new.topics or old.regex != new.regex:
            self._counted = False
            count_names(self.subscribed, () if old is None else old.topics, -1)
            count_names(self.subscribed, () if new is None else new.topics, 1)
        for member, by in ((old, -1), (new, 1)):
            if member is None:
                continue
            count_one(self.regexes, member.regex, by)
            if member.assignor is not None:
                named = (self._assignors.get(member.assignor) or 0) + by
                if named > 0:
                    self._assignors.put(member.assignor, named)
                else:
                    self._assignors.remove(member.assignor)
            if member.state is MemberState.STABLE:
                self._stable_at[member.epoch] = self._stable_at.get(member.epoch, 0) + by
                if not self._stable_at[member.epoch]:
                    del self._stable_at[member.epoch]
            if member.classic is not None:
                self.classic_members += by
                for name, _ in member.classic.protocols:
                    count_one(self._classic_protocols, name, by)

    def __repr__(self) -> str:
        return (
            f"<ConsumerGroup {self.name!r} {self.state} epoch={self.epoch} target={self.assignment_epoch} "
            f"members={len(self.members)} held={sum(map(len, self.partition_epochs.values()))}>"
        )
