"""The meaning of a coordinator's errors to Kafka's Java consumer (4.3.1), as literal tables, and why a member
joins again: the cause in its events, and the reason in its requests.

The errors are read from the response handlers of AbstractCoordinator and ConsumerCoordinator, and for the
consumer protocol from those of the heartbeat managers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum

from groupstorm.coordinator.errors import Error

#: Errors of JoinGroup and SyncGroup after which the client joins again without a pause
#: (AbstractCoordinator.joinGroupIfNeeded).
RETRIED_AT_ONCE = frozenset(
    {Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED}
)
#: Errors after which the client waits for retry.backoff.ms and joins again. NETWORK_EXCEPTION stands for a
#: lost connection.
RETRIED_AFTER_BACKOFF = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NETWORK_EXCEPTION,
    }
)
#: The exception that the reason of the next JoinGroup names, by error.
EXCEPTIONS: Mapping[Error, str] = {
    Error.UNKNOWN_MEMBER_ID: "UnknownMemberIdException",
    Error.ILLEGAL_GENERATION: "IllegalGenerationException",
    Error.REBALANCE_IN_PROGRESS: "RebalanceInProgressException",
    Error.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorLoadInProgressException",
    Error.COORDINATOR_NOT_AVAILABLE: "CoordinatorNotAvailableException",
    Error.NOT_COORDINATOR: "NotCoordinatorException",
    Error.NETWORK_EXCEPTION: "DisconnectException",
}
#: Errors that the handler of the JoinGroup response knows. Any other error is fatal: UNKNOWN_SERVER_ERROR.
EXPECTED_OF_JOIN = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.FENCED_INSTANCE_ID,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.GROUP_MAX_SIZE_REACHED,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.MEMBER_ID_REQUIRED,
        Error.NOT_COORDINATOR,
        Error.REBALANCE_IN_PROGRESS,
        Error.UNKNOWN_MEMBER_ID,
        Error.UNSUPPORTED_VERSION,
    }
)
#: Errors that the handler of the SyncGroup response knows: COORDINATOR_LOAD_IN_PROGRESS is not one.
EXPECTED_OF_SYNC = frozenset(
    {
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.FENCED_INSTANCE_ID,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.ILLEGAL_GENERATION,
        Error.NOT_COORDINATOR,
        Error.REBALANCE_IN_PROGRESS,
        Error.UNKNOWN_MEMBER_ID,
    }
)
#: Errors of JoinGroup, SyncGroup and Heartbeat after which the client looks the coordinator up.
COORDINATOR_MOVED = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
#: Errors of OffsetCommit after which the client looks the coordinator up.
COORDINATOR_UNKNOWN = COORDINATOR_MOVED | {Error.REQUEST_TIMED_OUT}
#: Errors after which the client sends a commit again (RetriableException).
COMMIT_RETRIED = COORDINATOR_UNKNOWN | {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
}
#: Errors after which a member resets its generation -> whether it resets its member id too.
GENERATION_RESET: Mapping[Error, bool] = {
    Error.UNKNOWN_MEMBER_ID: True,
    Error.FENCED_INSTANCE_ID: True,
    Error.ILLEGAL_GENERATION: False,
}


class Reaction(Enum):
    """A member's reaction to an error of ConsumerGroupHeartbeat. The next heartbeat is full in any case.

    It is read from AbstractHeartbeatRequestManager.onErrorResponse and ConsumerHeartbeatRequestManager.
    """

    FIND_COORDINATOR = "look the coordinator up; send as soon as it is known"
    RETRY = "send again after the backoff"
    FENCED = "give the partitions up and join again at once"
    REPORTED = "poll() throws; send again after the backoff"
    LEFT = "a member that has left is content; to others it is fatal"
    FATAL = "poll() throws; the member ends"


#: Every error that is not here is `Reaction.FATAL`.
REACTIONS: Mapping[Error, Reaction] = {
    Error.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    Error.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    Error.FENCED_MEMBER_EPOCH: Reaction.FENCED,
    Error.UNKNOWN_MEMBER_ID: Reaction.FENCED,
    Error.TOPIC_AUTHORIZATION_FAILED: Reaction.REPORTED,
    Error.GROUP_ID_NOT_FOUND: Reaction.LEFT,
}
#: Errors that say that the coordinator does not have the member any more.
FENCING = frozenset(error for error, reacts in REACTIONS.items() if reacts is Reaction.FENCED)


def reaction(error: Error) -> Reaction:
    return REACTIONS.get(error, Reaction.FATAL)


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
