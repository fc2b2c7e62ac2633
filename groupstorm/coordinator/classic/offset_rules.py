"""The rules of a classic group for its offsets: who may commit, what may be deleted, when offsets expire.

Kafka: ClassicGroup.validateOffsetCommit, validateOffsetDelete, validateDeleteGroup,
offsetExpirationCondition.
"""

from __future__ import annotations

from collections.abc import Callable

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, STABLE
from groupstorm.coordinator.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.errors import NO_ERROR, Error
from groupstorm.coordinator.messages import NO_MEMBER_ID, TXN_NEW_ERRORS_SINCE, OffsetCommit, TxnOffsetCommit
from groupstorm.coordinator.offsets import StoredOffset

#: When the retention time of an offset begins.
BaseTime = Callable[[StoredOffset], int]

#: First version of OffsetCommit that knows GROUP_ID_NOT_FOUND (KIP-848).
_GROUP_ID_NOT_FOUND_SINCE = 9


def validate_commit(group: ClassicGroup | None, request: OffsetCommit) -> Error:
    """Members of the present generation may commit, except between join and sync. Others may commit while
    the group is empty or does not exist."""
    outside = request.generation < 0
    if group is None:
        known = request.version >= _GROUP_ID_NOT_FOUND_SINCE
        refused = Error.GROUP_ID_NOT_FOUND if known else Error.ILLEGAL_GENERATION
        return NO_ERROR if outside else refused
    if outside and group.state is EMPTY:
        return NO_ERROR
    if outside and request.member_id == NO_MEMBER_ID and request.group_instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    error = group.validate(request.member_id, request.group_instance_id)
    if not error and request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if not error and group.state is COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return error


def validate_txn_commit(group: ClassicGroup | None, request: TxnOffsetCommit) -> Error:
    """As for OffsetCommit, but a producer that names no member is believed, and may commit at any time:
    older versions have no field for the member."""
    outside = request.generation < 0
    if group is None:
        not_found = request.version >= TXN_NEW_ERRORS_SINCE
        refusal = Error.GROUP_ID_NOT_FOUND if not_found else Error.ILLEGAL_GENERATION
        return NO_ERROR if outside else refusal
    nameless = request.member_id == NO_MEMBER_ID and request.group_instance_id is None
    if outside and (nameless or group.state is EMPTY):
        return NO_ERROR
    error = group.validate(request.member_id, request.group_instance_id)
    return error or (NO_ERROR if request.generation == group.generation else Error.ILLEGAL_GENERATION)


def validate_offset_delete(group: ClassicGroup) -> Error:
    """Offsets of a group with members can be deleted only if the group's subscribed topics can be read."""
    unreadable = group.state is not EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE
    return Error.NON_EMPTY_GROUP if unreadable else NO_ERROR


def validate_delete_group(group: ClassicGroup) -> Error:
    """A group with members cannot be deleted."""
    return NO_ERROR if group.state is EMPTY else Error.NON_EMPTY_GROUP


def expiration_base_time(group: ClassicGroup, compatibility: Compatibility) -> BaseTime | None:
    """Since when an offset counts as unused; None if the group's offsets do not expire.

    A group that manages partitions: since it became empty, and while it is stable, for topics that no member
    reads any more, since the commit. Commits from outside of any group: since the commit.
    """
    if group.protocol_type is None:
        return lambda stored: stored.committed_at_ms
    if group.state is EMPTY:
        return lambda stored: group.state_since_ms
    knows_topics = subscribed_topics(group, compatibility) is not None
    if group.protocol_type == CONSUMER_PROTOCOL_TYPE and knows_topics and group.state is STABLE:
        return lambda stored: stored.committed_at_ms
    return None
