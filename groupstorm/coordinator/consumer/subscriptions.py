"""The subscriptions of a group's members, by name and by regular expression, and how a change is noticed.

Kafka: GroupMetadataManager.hasMemberSubscriptionChanged, maybeUpdateRegularExpressions,
updateSubscriptionMetadata.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from groupstorm.coordinator.changes import write_records
from groupstorm.coordinator.consumer.group import (
    ConsumerGroup,
    ResolvedRegex,
    count_matches,
    count_one,
    is_homogeneous,
)
from groupstorm.coordinator.consumer.member import ConsumerEpochRecord, ConsumerMember, ConsumerRegexRecord
from groupstorm.coordinator.consumer.regexes import REFRESH_INTERVAL_MIN_MS, problem_of
from groupstorm.coordinator.effects import Write
from groupstorm.coordinator.errors import Error, Refused
from groupstorm.coordinator.modern.subscribed import SubscribedTopics, count_names
from groupstorm.coordinator.records import AppendCause, Record
from groupstorm.coordinator.shard import Shard
from groupstorm.trace.events.group_states import Cause
from groupstorm.turns import Turns

#: The interval in which a group looks at its topics again even if nothing says that they changed
#: (GroupMetadataManager.METADATA_REFRESH_INTERVAL_MS).
METADATA_REFRESH_INTERVAL_MS = 10 * 60 * 1000


class RegexChange(Enum):
    """The effect of a heartbeat on the member's regular expression (UpdateRegularExpressionStatus)."""

    NONE = auto()
    #: It is another one, whose topics are not known yet.
    CHANGED = auto()
    #: It is another one, whose topics are known, or none any more.
    CHANGED_AND_RESOLVED = auto()


class Noticed(NamedTuple):
    """The group after it looked at its subscribed topics."""

    epoch: int
    is_homogeneous: bool


def topics_of(group: ConsumerGroup, member: ConsumerMember) -> tuple[str, ...]:
    """The member's topics, named or matched, in the order of Kafka's sets (UnionSet)."""
    resolved = group.resolved.get(member.regex) if member.regex else None
    if resolved is None or not resolved.topics:
        return member.topics_in_order
    if not member.topics:
        return resolved.in_order
    large, small = resolved.in_order, member.topics_in_order
    if len(small) > len(large):
        large, small = small, large
    return tuple(dict.fromkeys((*large, *small)))


def write_subscription(
    group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember, records: list[Record]
) -> bool:
    """Write the member's subscription if anything in it changed; whether the named topics did."""
    if after is before or after == before:
        return False
    records.append(group.member_record(after))
    return after.topics != before.topics


def change_regex(
    shard: Shard,
    group: ConsumerGroup,
    before: ConsumerMember,
    after: ConsumerMember,
    records: list[Record],
) -> RegexChange:
    """Write what another regular expression of the member changes, and resolve expressions if that is due.

    `Refused` (INVALID_REGULAR_EXPRESSION) if RE2 does not take the expression. Resolving goes on in the
    background: ``shard.background`` holds it.
    """
    old, new = before.regex, after.regex
    change, is_unknown = RegexChange.NONE, False
    if old != new:
        change = RegexChange.CHANGED
        if old and group.regexes.get(old, 0) == 1:
            records.append(ConsumerRegexRecord(group.name, old, None))
        if new and group.regexes.get(new, 0) == 0:
            if (problem := problem_of(new)) is not None:
                raise Refused(
                    Error.INVALID_REGULAR_EXPRESSION,
                    f"SubscribedTopicRegex `{new}` is not a valid regular expression: {problem}.",
                )
            is_unknown = True
        elif (new and new in group.resolved) or (not new and old):
            change = RegexChange.CHANGED_AND_RESOLVED
    if is_unknown or group.regexes:
        _resolve_if_due(shard, group, old, new, is_unknown)
    return change


def _resolve_if_due(shard: Shard, group: ConsumerGroup, old: str, new: str, is_unknown: bool) -> None:
    first = next(iter(group.resolved.items()), None)
    if first is not None and shard.now_ms <= first[1].resolved_at_ms + REFRESH_INTERVAL_MIN_MS:
        return
    regexes = dict(group.regexes)
    count_one(regexes, old, -1)
    count_one(regexes, new, 1)
    refresh_ms = shard.config.consumer.regex_refresh_interval_ms
    is_due = (
        is_unknown
        or len(regexes) != len(group.resolved)
        or (0 if first is None else first[1].version) < shard.topics.last_version_with_new_topics
        or first is None
        or shard.now_ms > first[1].resolved_at_ms + refresh_ms
    )
    if is_due and regexes:
        shard.background.append((group.name, tuple(regexes), shard.may_match))


def subscribed_topics(
    group: ConsumerGroup, before: ConsumerMember | None, after: ConsumerMember
) -> SubscribedTopics:
    """The group's topics as if ``before`` were replaced by ``after``
    (ConsumerGroup.computeSubscribedTopicNames)."""
    topics = dict(group.subscribed)
    count_names(topics, () if before is None else before.topics, -1)
    count_names(topics, after.topics, 1)
    old = before.regex if before is not None else ""
    if old and old != after.regex and group.regexes.get(old, 0) == 1:
        count_matches(topics, group.resolved.get(old), -1)
    return topics


def notice_topics(
    shard: Shard,
    group: ConsumerGroup,
    bumps: bool,
    before: ConsumerMember,
    after: ConsumerMember,
    records: list[Record],
) -> Noticed:
    """Count the group epoch up if ``bumps``, or if the subscribed topics are not as they were."""
    regexes = dict(group.regexes)
    if before.regex != after.regex:
        count_one(regexes, before.regex, -1)
        count_one(regexes, after.regex, 1)
    topics = subscribed_topics(group, before, after)
    metadata_hash = shard.topics.hash_of(topics)
    is_member = after.member_id in group.members or after.instance in group.static_members
    homogeneous = is_homogeneous(regexes, topics, len(group.members) + (not is_member))
    epoch = group.epoch
    if bumps or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(ConsumerEpochRecord(group.name, epoch, metadata_hash))
    group.refresh_ms, group.refresh_epoch = shard.now_ms + METADATA_REFRESH_INTERVAL_MS, epoch
    return Noticed(epoch, homogeneous)


def take_resolved(shard: Shard, group: ConsumerGroup, resolved: dict[str, ResolvedRegex]) -> list[Record]:
    """The records of resolved expressions; the group epoch counts up if they match other topics than before
    (GroupMetadataManager.handleRegularExpressionsResult)."""
    records: list[Record] = []
    topics = dict(group.subscribed)
    bumps = False
    for regex, found in resolved.items():
        if not group.regexes.get(regex):
            continue
        before = group.resolved.get(regex)
        if (before.topics if before is not None else frozenset()) != found.topics:
            bumps = True
            count_matches(topics, before, -1)
            count_matches(topics, found, 1)
        listed = tuple(sorted(found.topics))
        records.append(ConsumerRegexRecord(group.name, regex, listed, found.version, found.resolved_at_ms))
    metadata_hash = shard.topics.hash_of(topics)
    if bumps or metadata_hash != group.metadata_hash:
        epoch = group.epoch + 1
        records.append(ConsumerEpochRecord(group.name, epoch, metadata_hash))
        group.refresh_ms, group.refresh_epoch = shard.now_ms + METADATA_REFRESH_INTERVAL_MS, epoch
    return records


def write_resolved(shard: Shard, name: str, resolved: dict[str, ResolvedRegex]) -> Turns[Write | None]:
    """The write of the topics that the expressions match; None if the group is gone or nothing is new."""
    group = shard.group_as(name, ConsumerGroup)
    if group is None:
        return None
    records = take_resolved(shard, group, resolved)
    yield sum(len(one.topics) for one in resolved.values())
    return (
        write_records(shard, name, records, AppendCause.REGEXES_RESOLVED, why=Cause.RESOLVED)
        if records
        else None
    )
