"""The requests of a consumer, as Kafka's Java client 4.3 fills them in."""

from __future__ import annotations

from groupstorm.assignors.contract import Assignor, subscription_user_data
from groupstorm.assignors.userdata import Assignment, Subscription, TopicPartition, encode_subscription
from groupstorm.clients.config import ConsumerConfig
from groupstorm.clients.generation import Generation
from groupstorm.coordinator.messages import (
    NO_GENERATION,
    Heartbeat,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)

JOIN_GROUP_VERSION = 9
SYNC_GROUP_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_GROUP_VERSION = 5
SUBSCRIPTION_VERSION = 3

#: What an assignor was last told: its assignment (None: never) and the generation of that.
LastAssignment = tuple[Assignment | None, int]
NEVER_ASSIGNED: LastAssignment = (None, NO_GENERATION)


def subscription(
    config: ConsumerConfig,
    assignor: Assignor,
    generation: Generation,
    owned: tuple[TopicPartition, ...],
    last: LastAssignment,
) -> bytes:
    """What a member tells one assignor (ConsumerCoordinator.metadata)."""
    told = Subscription(
        topics=config.topics,
        user_data=subscription_user_data(assignor, *last),
        owned=owned,
        generation=generation.id,
        rack=config.client_rack,
    )
    return encode_subscription(told, SUBSCRIPTION_VERSION)


def join_group(
    config: ConsumerConfig, generation: Generation, protocols: tuple[tuple[str, bytes], ...], reason: str
) -> JoinGroup:
    """The rebalance timeout is max.poll.interval.ms. ``reason``: why it joins, "" the first time."""
    return JoinGroup(
        config.group_id,
        generation.member_id,
        config.group_instance_id,
        config.session_timeout_ms,
        config.max_poll_interval_ms,
        config.protocol_type,
        protocols,
        JOIN_GROUP_VERSION,
        config.client_id,
        reason=reason,
    )


def sync_group(
    config: ConsumerConfig, joined: JoinGroupResponse, assignments: tuple[tuple[str, bytes], ...]
) -> SyncGroup:
    """The next request after a JoinGroup's answer; ``assignments`` is the leader's plan."""
    return SyncGroup(
        config.group_id,
        joined.member_id,
        config.group_instance_id,
        joined.generation,
        config.protocol_type,
        joined.protocol,
        assignments,
        SYNC_GROUP_VERSION,
        config.client_id,
    )


def heartbeat(config: ConsumerConfig, generation: Generation) -> Heartbeat:
    return Heartbeat(
        config.group_id,
        generation.member_id,
        config.group_instance_id,
        generation.id,
        HEARTBEAT_VERSION,
        config.client_id,
    )


def leave_group(config: ConsumerConfig, generation: Generation, reason: str) -> LeaveGroup:
    """By member id alone, static members too (AbstractCoordinator.maybeLeaveGroup)."""
    member = LeavingMember(generation.member_id, None, reason)
    return LeaveGroup(config.group_id, (member,), LEAVE_GROUP_VERSION, config.client_id)
