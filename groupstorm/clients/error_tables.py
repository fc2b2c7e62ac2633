"""What each error of a coordinator means to Kafka's Java consumer (4.3.1), as literal tables.

They are read from the response handlers of AbstractCoordinator and ConsumerCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping

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
