"""What the answers of a coordinator mean to Kafka's Java consumer, as literal tables (4.3.1).

From the response handlers of AbstractCoordinator and ConsumerCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping

from groupstorm.coordinator.errors import Error

#: Errors of JoinGroup and SyncGroup after which the client joins again at once, without a pause
#: (AbstractCoordinator.joinGroupIfNeeded).
RETRIED_AT_ONCE = frozenset(
    {Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED}
)
#: Errors after which it pauses for retry.backoff.ms first. NETWORK_EXCEPTION: the connection is lost.
RETRIED_AFTER_BACKOFF = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.NETWORK_EXCEPTION,
    }
)
#: What an error is called in the reason of the JoinGroup that follows it.
EXCEPTIONS: Mapping[Error, str] = {
    Error.UNKNOWN_MEMBER_ID: "UnknownMemberIdException",
    Error.ILLEGAL_GENERATION: "IllegalGenerationException",
    Error.REBALANCE_IN_PROGRESS: "RebalanceInProgressException",
    Error.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorLoadInProgressException",
    Error.COORDINATOR_NOT_AVAILABLE: "CoordinatorNotAvailableException",
    Error.NOT_COORDINATOR: "NotCoordinatorException",
    Error.NETWORK_EXCEPTION: "DisconnectException",
}
#: Errors that the handler of JoinGroup's answer knows. Any other is fatal as UNKNOWN_SERVER_ERROR.
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
#: The same of SyncGroup: COORDINATOR_LOAD_IN_PROGRESS is not among them.
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
#: Errors of JoinGroup, SyncGroup and Heartbeat that make the coordinator unknown.
COORDINATOR_MOVED = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})
#: The same of OffsetCommit.
COORDINATOR_UNKNOWN = COORDINATOR_MOVED | {Error.REQUEST_TIMED_OUT}
#: Errors after which a commit is sent again (RetriableException).
COMMIT_RETRIED = COORDINATOR_UNKNOWN | {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
}
#: Errors that tell a member that its generation or id is no longer good -> whether its id is reset too.
GENERATION_RESET: Mapping[Error, bool] = {
    Error.UNKNOWN_MEMBER_ID: True,
    Error.FENCED_INSTANCE_ID: True,
    Error.ILLEGAL_GENERATION: False,
}
