"""The rules of a streams group for its offsets: who may commit and fetch them.

Kafka: StreamsGroup.validateOffsetCommit, validateOffsetFetch, createAssignmentEpochValidator.
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
from groupstorm.coordinator.streams.group import StreamsGroup
from groupstorm.coordinator.streams.member import StreamsMember

#: First version of OffsetCommit for members of the streams protocol.
_MEMBER_EPOCH_SINCE = 9


def validate_commit(group: StreamsGroup, request: OffsetCommit) -> Error:
    """Members may commit at their epoch, and at an older one for partitions whose tasks they have had since.
    Others may commit while the group is empty."""
    if request.generation < 0 and not group.members:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if request.version < _MEMBER_EPOCH_SINCE:
        return Error.UNSUPPORTED_VERSION
    return _validate_epoch(group, member, request.generation, request.offsets)


def validate_txn_commit(group: StreamsGroup, request: TxnOffsetCommit) -> Error:
    """As for OffsetCommit, but a producer that names no member is believed. A wrong epoch is a wrong
    generation to older producers."""
    if request.generation < 0 and not group.members:
        return NO_ERROR
    nameless = request.member_id == NO_MEMBER_ID and request.group_instance_id is None
    if request.generation == NO_GENERATION and nameless:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    error = _validate_epoch(group, member, request.generation, request.offsets)
    is_told = error is not Error.STALE_MEMBER_EPOCH or request.version >= TXN_NEW_ERRORS_SINCE
    return error if is_told else Error.ILLEGAL_GENERATION


def _validate_epoch(
    group: StreamsGroup, member: StreamsMember, epoch: int, offsets: Mapping[str, Mapping[int, Any]]
) -> Error:
    """Fence a newer epoch always, and an older one if the member got a task only after it."""
    if epoch == member.epoch:
        return NO_ERROR
    if epoch > member.epoch or group.topology is None:
        return Error.STALE_MEMBER_EPOCH
    for topic, partitions in offsets.items():
        subtopology = group.topology.subtopology_reading(topic)
        for number in partitions:
            assigned_at = None if subtopology is None else member.assigned_at((subtopology, number))
            if assigned_at is None or epoch < assigned_at:
                return Error.STALE_MEMBER_EPOCH
    return NO_ERROR


def validate_fetch(group: StreamsGroup, request: OffsetFetch) -> Error:
    """A fetch that names a member must name its epoch."""
    if request.member_id is None and request.member_epoch < 0:
        return NO_ERROR
    member = None if request.member_id is None else group.members.get(request.member_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    return NO_ERROR if request.member_epoch == member.epoch else Error.STALE_MEMBER_EPOCH
