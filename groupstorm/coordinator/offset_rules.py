"""The rules of groups for their offsets: who may commit and fetch them, and when they expire.

Kafka: validateOffsetCommit of ClassicGroup, ConsumerGroup and StreamsGroup, validateOffsetFetch of the latter
two, CommitPartitionValidator (KIP-1251), ClassicGroup.offsetExpirationCondition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, STABLE
from groupstorm.coordinator.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.groups import Group
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    TXN_NEW_ERRORS_SINCE,
    OffsetCommit,
    OffsetFetch,
    TxnOffsetCommit,
)
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.offsets import StoredOffset
from groupstorm.coordinator.topics import Topics

#: When the retention time of an offset begins.
BaseTime = Callable[[StoredOffset], int]

#: First version of OffsetCommit that knows GROUP_ID_NOT_FOUND (KIP-848).
_GROUP_ID_NOT_FOUND_SINCE = 9


#: A commit of a member, or of a producer for its transaction.
Commit = OffsetCommit | TxnOffsetCommit


def _is_nameless(request: Commit) -> bool:
    return request.member_id == NO_MEMBER_ID and request.group_instance_id is None


def validate_commit(group: ClassicGroup | None, request: Commit, in_transaction: bool) -> Error:
    """Members of the present generation may commit, except between join and sync. Others may commit while
    the group is empty or does not exist.

    A producer that names no member is believed, and may commit at any time: older versions have no field for
    the member.
    """
    outside = request.generation < 0
    if group is None:
        since = TXN_NEW_ERRORS_SINCE if in_transaction else _GROUP_ID_NOT_FOUND_SINCE
        refused = Error.GROUP_ID_NOT_FOUND if request.version >= since else Error.ILLEGAL_GENERATION
        return NO_ERROR if outside else refused
    if outside and group.state is EMPTY:
        return NO_ERROR
    if outside and _is_nameless(request):
        return NO_ERROR if in_transaction else Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if not error and not in_transaction and group.state is COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return error


def expiration_base_time(group: Group, compatibility: Compatibility) -> BaseTime | None:
    """When an offset began to be unused; None if the group's offsets do not expire.

    A classic group that manages partitions: when it became empty, and while it is stable, for topics that no
    member reads any more, at the commit. Commits from outside of any group, and other groups: at the commit.
    """
    if not isinstance(group, ClassicGroup) or group.protocol_type is None:
        return lambda stored: stored.committed_at_ms
    if group.state is EMPTY:
        return lambda stored: group.state_since_ms
    knows_topics = subscribed_topics(group, compatibility) is not None
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE and knows_topics and group.state is STABLE:
        return lambda stored: stored.committed_at_ms
    return None


#: First version of OffsetCommit for members of the consumer protocol.
_MEMBER_EPOCH_SINCE = 9


def validate_modern_commit(
    group: ModernGroup[M, Any], topics: Topics, request: Commit, in_transaction: bool
) -> Error:
    """Members may commit at their epoch, and at an older one for partitions that they have had since then.
    Others may commit while the group is empty. Share groups have no committed offsets.

    A producer that names no member is believed. A wrong epoch is a wrong generation to older producers.
    """
    if not group.keeps_offsets:
        return Error.GROUP_ID_NOT_FOUND
    if request.generation < 0 and not group.members:
        return NO_ERROR
    if in_transaction and request.generation == NO_GENERATION and _is_nameless(request):
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if not in_transaction and not member.speaks_classic and request.version < _MEMBER_EPOCH_SINCE:
        return Error.UNSUPPORTED_VERSION
    error = _validate_epoch(group, member, topics, request.generation, request.offsets)
    is_told = error is not Error.STALE_MEMBER_EPOCH or request.version >= TXN_NEW_ERRORS_SINCE
    return error if is_told else Error.ILLEGAL_GENERATION


def _validate_epoch(
    group: ModernGroup[M, Any],
    member: M,
    topics: Topics,
    epoch: int,
    offsets: Mapping[str, Mapping[int, Any]],
) -> Error:
    """Fence a newer epoch always, and an older one if the member got a partition only after it."""
    stale = Error.ILLEGAL_GENERATION if member.speaks_classic else Error.STALE_MEMBER_EPOCH
    if epoch == member.epoch:
        return NO_ERROR
    if epoch > member.epoch:
        return stale
    for name, partitions in offsets.items():
        for number in partitions:
            assigned_at = group.assigned_at(member, topics, name, number)
            if assigned_at is None or epoch < assigned_at:
                return stale
    return NO_ERROR


def validate_fetch(group: ModernGroup[M, Any], request: OffsetFetch) -> Error:
    """A fetch that names a member must name its epoch, unless the group has no offsets at all."""
    if not group.keeps_offsets or (request.member_id is None and request.member_epoch < 0):
        return NO_ERROR
    member = None if request.member_id is None else group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if request.member_epoch == member.epoch:
        return NO_ERROR
    return Error.ILLEGAL_GENERATION if member.speaks_classic else Error.STALE_MEMBER_EPOCH
