"""The requests of a consumer, as Kafka's Java client 4.3 or another library (`profiles.py`) fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from groupstorm.assignors.contract import COOPERATIVE, Assignor, subscription_user_data
from groupstorm.assignors.userdata import Assignment, TopicPartition
from groupstorm.assignors.userdata.consumer_protocol import write_subscription
from groupstorm.assignors.userdata.sticky import encode_sticky
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.member_session import Generation
from groupstorm.clients.profiles import ClientProfile, CooperativeUserData, GroupProtocol
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    CommittedOffset,
    Heartbeat,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    OffsetFetch,
    SyncGroup,
)

COOPERATIVE_STICKY = "cooperative-sticky"
OFFSET_FETCH_VERSION = 9

#: The first versions with group.instance.id (KIP-345), and the first versions with a reason (KIP-800).
_HEARTBEAT_WITH_INSTANCE, _SYNC_GROUP_WITH_INSTANCE, _OFFSET_COMMIT_WITH_INSTANCE = 3, 3, 7
_JOIN_GROUP_WITH_REASON, _LEAVE_GROUP_WITH_REASON = 8, 5
#: The first version with the chosen protocol (KIP-559).
_SYNC_GROUP_WITH_PROTOCOL = 5

#: Looked up on the class, a member costs as much as a call before Python 3.12.
_GENERATION: Final = CooperativeUserData.GENERATION

#: A client that is not in a group.
NO_MEMBER: Final = Generation()
#: The last assignment that an assignor received (None: none yet), and its generation.
LastAssignment = tuple[Assignment | None, int]
NEVER_ASSIGNED: LastAssignment = (None, NO_GENERATION)


def subscription(
    config: ConsumerConfig,
    topics: tuple[str, ...],
    assignor: Assignor,
    generation: Generation,
    owned: tuple[TopicPartition, ...],
    last: LastAssignment,
) -> bytes:
    """A member's subscription to ``topics`` for one assignor (ConsumerCoordinator.metadata)."""
    profile = config.profile
    user_data = _user_data(profile, assignor, last)
    sends_generation = profile.eager_sends_generation or COOPERATIVE in assignor.protocols
    return write_subscription(
        profile.subscription_version(assignor.name),
        topics,
        profile.no_user_data if user_data is None else user_data,
        owned,
        generation.id if sends_generation else NO_GENERATION,
        config.client_rack,
    )


def _user_data(profile: ClientProfile, assignor: Assignor, last: LastAssignment) -> bytes | None:
    assignment, generation = last
    if assignor.name != COOPERATIVE_STICKY or profile.cooperative_user_data is _GENERATION:
        return subscription_user_data(assignor, assignment, generation)
    match profile.cooperative_user_data:
        case CooperativeUserData.NONE:
            return None
        case _ if assignment is not None:
            return encode_sticky(assignment.partitions, generation)
        case CooperativeUserData.STICKY:
            return encode_sticky((), None)
        case _:
            return None


def join_group(
    config: ConsumerConfig, generation: Generation, protocols: tuple[tuple[str, bytes], ...], reason: str
) -> JoinGroup:
    """``reason``: why the member joins; "" the first time."""
    version = config.profile.join_group_version
    return JoinGroup(
        config.group_id,
        generation.member_id,
        config.group_instance_id,
        config.session_timeout_ms,
        config.rebalance_timeout_ms,
        config.protocol_type,
        protocols,
        version,
        config.client_id,
        reason=config.profile.reason(reason) if version >= _JOIN_GROUP_WITH_REASON else "",
    )


def sync_group(
    config: ConsumerConfig, joined: JoinGroupResponse, assignments: tuple[tuple[str, bytes], ...]
) -> SyncGroup:
    """The SyncGroup after the response ``joined``. ``assignments``: the leader's plan."""
    version = config.profile.sync_group_version
    sends_protocol = version >= _SYNC_GROUP_WITH_PROTOCOL
    return SyncGroup(
        config.group_id,
        joined.member_id,
        config.group_instance_id if version >= _SYNC_GROUP_WITH_INSTANCE else None,
        joined.generation,
        config.protocol_type if sends_protocol else None,
        joined.protocol if sends_protocol else None,
        assignments,
        version,
        config.client_id,
    )


def heartbeat(config: ConsumerConfig, generation: Generation) -> Heartbeat:
    return Heartbeat(
        config.group_id,
        generation.member_id,
        heartbeat_instance(config),
        generation.id,
        config.profile.heartbeat_version,
        config.client_id,
    )


def heartbeat_instance(config: ConsumerConfig) -> str | None:
    """The group.instance.id in a consumer's heartbeats."""
    has_instance = config.profile.heartbeat_version >= _HEARTBEAT_WITH_INSTANCE
    return config.group_instance_id if has_instance else None


def leave_group(config: ConsumerConfig, generation: Generation, reason: str) -> LeaveGroup:
    """Leave by member id alone, static members too (AbstractCoordinator.maybeLeaveGroup)."""
    version = config.profile.leave_group_version
    sent_reason = config.profile.reason(reason) if version >= _LEAVE_GROUP_WITH_REASON else ""
    member = LeavingMember(generation.member_id, None, sent_reason)
    return LeaveGroup(config.group_id, (member,), version, config.client_id)


def offset_fetch(
    config: ConsumerConfig, partitions: Mapping[str, tuple[int, ...]], generation: Generation = NO_MEMBER
) -> OffsetFetch:
    """Ask for the committed offsets of ``partitions`` (topic -> partitions).

    A member whose broker assigns names itself and its epoch, as long as it is in the group.
    """
    names_itself = config.group_protocol is not GroupProtocol.CLASSIC and generation.id > 0
    member_id, epoch = (generation.member_id, generation.id) if names_itself else (None, NO_GENERATION)
    return OffsetFetch(
        config.group_id, partitions, OFFSET_FETCH_VERSION, member_id, epoch, require_stable=True
    )


def offset_commit(
    config: ConsumerConfig, generation: Generation, offsets: Mapping[str, Mapping[int, CommittedOffset]]
) -> OffsetCommit:
    version = config.profile.offset_commit_version
    return OffsetCommit(
        config.group_id,
        generation.member_id,
        config.group_instance_id if version >= _OFFSET_COMMIT_WITH_INSTANCE else None,
        generation.id,
        offsets,
        version,
        config.client_id,
    )
