"""The rules of a consumer or streams group for its offsets: who may commit and fetch them.

Kafka: validateOffsetCommit and validateOffsetFetch of ConsumerGroup and of StreamsGroup,
CommitPartitionValidator (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    NO_MEMBER_ID,
    TXN_NEW_ERRORS_SINCE,
    OffsetCommit,
    OffsetFetch,
    TxnOffsetCommit,
)
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.topics import Topics

#: First version of OffsetCommit for members of the consumer protocol.
_MEMBER_EPOCH_SINCE = 9


def validate_commit(group: ModernGroup[M, Any], topics: Topics, request: OffsetCommit) -> Error:
    """Members may commit at their epoch, and at an older one for partitions that they have had since then.
    Others may commit while the group is empty. Share groups have no committed offsets."""
    if not group.keeps_offsets:
        return Error.GROUP_ID_NOT_FOUND
    if request.generation < 0 and not group.members:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if not member.speaks_classic and request.version < _MEMBER_EPOCH_SINCE:
        return Error.UNSUPPORTED_VERSION
    return _validate_epoch(group, member, topics, request.generation, request.offsets)


def validate_txn_commit(group: ModernGroup[M, Any], topics: Topics, request: TxnOffsetCommit) -> Error:
    """As for OffsetCommit, but a producer that names no member is believed. A wrong epoch is a wrong
    generation to older producers."""
    if not group.keeps_offsets:
        return Error.GROUP_ID_NOT_FOUND
    if request.generation < 0 and not group.members:
        return NO_ERROR
    nameless = request.member_id == NO_MEMBER_ID and request.group_instance_id is None
    if request.generation == NO_GENERATION and nameless:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
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
