"""Why a member joins again: the cause in its events, and the reason in its requests."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

#: JoinGroupRequest.maybeTruncateReason.
MAX_REASON_CHARACTERS = 255


class RejoinCause(StrEnum):
    """Why a member has to join (again). An error that resets its generation is a cause under Kafka's name."""

    FIRST_JOIN = "first-join"
    GROUP_REBALANCING = "group-rebalancing"
    REVOKED_PARTITIONS = "revoked-partitions"
    METADATA_CHANGED = "metadata-changed"
    ASSIGNMENT_MISMATCH = "assignment-does-not-match-subscription"
    POLL_TIMEOUT = "poll-timeout"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    #: Kafka Streams: an assignment asked for another rebalance (enforceRebalance).
    FOLLOW_UP = "follow-up-rebalance"


#: The reason in the next JoinGroup, by cause (KIP-800).
REASONS: Mapping[RejoinCause, str] = {
    RejoinCause.FIRST_JOIN: "",
    RejoinCause.GROUP_REBALANCING: "group is already rebalancing",
    RejoinCause.REVOKED_PARTITIONS: "need to revoke partitions and re-join",
    RejoinCause.METADATA_CHANGED: "cached metadata has changed",
    RejoinCause.ASSIGNMENT_MISMATCH: "received assignment does not match the current subscription",
    RejoinCause.POLL_TIMEOUT: "consumer pro-actively leaving the group",
    RejoinCause.SUBSCRIPTION_CHANGED: "subscription has changed",
    RejoinCause.FOLLOW_UP: "Scheduled probing rebalance",
}


#: The reason in the LeaveGroup that close() sends.
CLOSING = "the consumer is being closed"
#: The beginning of the reason in the JoinGroup that follows MEMBER_ID_REQUIRED.
NEEDS_MEMBER_ID = "need to re-join with the given member-id"


def needs_member_id(member_id: str) -> str:
    """The reason in the JoinGroup that follows MEMBER_ID_REQUIRED."""
    return f"{NEEDS_MEMBER_ID}: {member_id}"[:MAX_REASON_CHARACTERS]
