"""Why a member joins again: what its events say, and what it tells the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

#: JoinGroupRequest.maybeTruncateReason.
MAX_REASON_CHARACTERS = 255


class RejoinCause(StrEnum):
    """Why a member has to join (again); errors that reset its generation stand under Kafka's names."""

    FIRST_JOIN = "first-join"
    GROUP_REBALANCING = "group-rebalancing"
    REVOKED_PARTITIONS = "revoked-partitions"
    METADATA_CHANGED = "metadata-changed"
    ASSIGNMENT_MISMATCH = "assignment-does-not-match-subscription"
    POLL_TIMEOUT = "poll-timeout"
    SUBSCRIPTION_CHANGED = "subscription-changed"
    #: Kafka Streams: an assignment has asked for another rebalance, now or later (enforceRebalance).
    FOLLOW_UP = "follow-up-rebalance"


#: What the next JoinGroup tells about a cause (KIP-800).
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


#: What LeaveGroup tells on close().
CLOSING = "the consumer is being closed"
#: How the reason begins of the JoinGroup that comes back with the id that was given.
NEEDS_MEMBER_ID = "need to re-join with the given member-id"


def needs_member_id(member_id: str) -> str:
    """See `NEEDS_MEMBER_ID`."""
    return f"{NEEDS_MEMBER_ID}: {member_id}"[:MAX_REASON_CHARACTERS]
