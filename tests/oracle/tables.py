"""Literal tables of what scripts can reach and cannot reach; a run with another result reports it."""

from __future__ import annotations

from groupstorm.coordinator.classic.states import TRANSITIONS
from groupstorm.coordinator.errors import Error


def _rules(**errors: str) -> dict[str, tuple[str, ...]]:
    """Names of errors by kind of answer."""
    return {kind: tuple(names.split()) for kind, names in errors.items()}


#: Errors that the classic group's own rules give, by kind of answer: a long run is expected to meet each.
RULES = _rules(
    join=(
        "NONE INVALID_GROUP_ID INVALID_SESSION_TIMEOUT UNKNOWN_MEMBER_ID GROUP_MAX_SIZE_REACHED "
        "INCONSISTENT_GROUP_PROTOCOL MEMBER_ID_REQUIRED FENCED_INSTANCE_ID UNKNOWN_SERVER_ERROR"
    ),
    sync=(
        "NONE INVALID_GROUP_ID UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID ILLEGAL_GENERATION "
        "INCONSISTENT_GROUP_PROTOCOL REBALANCE_IN_PROGRESS"
    ),
    heartbeat=(
        "NONE INVALID_GROUP_ID UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID ILLEGAL_GENERATION REBALANCE_IN_PROGRESS"
    ),
    # what is wrong with single members stands beside them, not in the answer's own error
    leave="NONE INVALID_GROUP_ID",
    commit=(
        "NONE UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID ILLEGAL_GENERATION REBALANCE_IN_PROGRESS "
        "GROUP_ID_NOT_FOUND"
    ),
    fetch_offsets="NONE",
    describe="NONE GROUP_ID_NOT_FOUND",
)

#: The same for scripts of consumer groups, whose members speak either protocol.
GROUP_RULES = _rules(
    chb=(
        "NONE INVALID_REQUEST UNSUPPORTED_ASSIGNOR INVALID_REGULAR_EXPRESSION GROUP_ID_NOT_FOUND "
        "GROUP_MAX_SIZE_REACHED UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH FENCED_INSTANCE_ID "
        "UNRELEASED_INSTANCE_ID"
    ),
    join="NONE UNKNOWN_MEMBER_ID MEMBER_ID_REQUIRED INCONSISTENT_GROUP_PROTOCOL",
    sync="NONE UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
    heartbeat="NONE UNKNOWN_MEMBER_ID ILLEGAL_GENERATION",
    leave="NONE",
    commit="NONE UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH UNSUPPORTED_VERSION",
    fetch_offsets="NONE UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH",
    describe="NONE GROUP_ID_NOT_FOUND",
)
#: Errors that only groups that change their protocol give besides.
_MIGRATION_RULES = _rules(
    chb="UNKNOWN_SERVER_ERROR",
    join="FENCED_INSTANCE_ID GROUP_MAX_SIZE_REACHED REBALANCE_IN_PROGRESS",
    sync="REBALANCE_IN_PROGRESS INCONSISTENT_GROUP_PROTOCOL FENCED_INSTANCE_ID",
    heartbeat="REBALANCE_IN_PROGRESS FENCED_INSTANCE_ID",
    commit="ILLEGAL_GENERATION",
)
#: The same for scripts of share groups.
_SHARE_RULES = _rules(
    shb=(
        "NONE INVALID_REQUEST GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH"
    ),
    describe_share="NONE GROUP_ID_NOT_FOUND INVALID_GROUP_ID",
    chb="NONE GROUP_ID_NOT_FOUND",
    join="INCONSISTENT_GROUP_PROTOCOL",
    sync="UNKNOWN_MEMBER_ID",
    heartbeat="UNKNOWN_MEMBER_ID",
    commit="GROUP_ID_NOT_FOUND",
    describe="GROUP_ID_NOT_FOUND",
    fetch_offsets="NONE",
)
#: The same for scripts of streams groups.
_STREAMS_RULES = _rules(
    streams=(
        "NONE INVALID_REQUEST STREAMS_INVALID_TOPOLOGY GROUP_ID_NOT_FOUND GROUP_MAX_SIZE_REACHED "
        "UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH FENCED_INSTANCE_ID UNRELEASED_INSTANCE_ID "
        "UNKNOWN_SERVER_ERROR"
    ),
    describe_streams="NONE GROUP_ID_NOT_FOUND INVALID_GROUP_ID",
    shb="NONE GROUP_ID_NOT_FOUND",
    chb="NONE GROUP_ID_NOT_FOUND",
    join="NONE MEMBER_ID_REQUIRED UNKNOWN_MEMBER_ID INCONSISTENT_GROUP_PROTOCOL",
    sync="UNKNOWN_MEMBER_ID",
    heartbeat="UNKNOWN_MEMBER_ID",
    commit="NONE UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH UNSUPPORTED_VERSION GROUP_ID_NOT_FOUND",
    fetch_offsets="NONE UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH",
    describe="NONE GROUP_ID_NOT_FOUND",
)

RULES_BY_KIND: dict[str, dict[str, tuple[str, ...]]] = {
    "classic": RULES,
    "consumer": GROUP_RULES,
    "share": _SHARE_RULES,
    "streams": _STREAMS_RULES,
    "migration": {kind: GROUP_RULES[kind] + _MIGRATION_RULES.get(kind, ()) for kind in GROUP_RULES},
}

#: Error codes that no script gets an answer with, though append_error may name them: Kafka tells clients
#: another (CoordinatorOperationExceptionHelper; appendGroupMetadataErrorToResponseError of
#: GroupMetadataManager).
UNREACHABLE_ERRORS: dict[str, str] = {
    "UNKNOWN_TOPIC_OR_PARTITION": "a failed append for this reason is told as COORDINATOR_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS": "a failed append for this reason is told as COORDINATOR_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT": "a failed append for this reason is told as COORDINATOR_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER": "a failed append for this reason is told as NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR": "a failed append for this reason is told as NOT_COORDINATOR",
    "MESSAGE_TOO_LARGE": "a failed append for this reason is told as UNKNOWN_SERVER_ERROR",
    "RECORD_LIST_TOO_LARGE": "a failed append for this reason is told as UNKNOWN_SERVER_ERROR",
    "INVALID_FETCH_SIZE": "a failed append for this reason is told as UNKNOWN_SERVER_ERROR",
}

#: Errors that a client may meet at these APIs in a whole broker, and a script never by a rule of the
#: coordinator. (An append that fails for such a reason brings the name up all the same.)
OUTSIDE_THE_COORDINATOR: dict[str, str] = {
    "COORDINATOR_LOAD_IN_PROGRESS": "scripts start when all is loaded; told for NETWORK_EXCEPTION",
    "COORDINATOR_NOT_AVAILABLE": "the service is started; told for failed appends",
    "NOT_COORDINATOR": "the partition never moves; told for failed appends",
    "GROUP_AUTHORIZATION_FAILED": "KafkaApis asks the authorizer",
    "TOPIC_AUTHORIZATION_FAILED": "KafkaApis asks the authorizer",
    "UNSUPPORTED_VERSION": "KafkaApis refuses instances and versions that the broker does not know",
    "OFFSET_METADATA_TOO_LARGE": "a script's commits have no metadata",
    "UNSTABLE_OFFSET_COMMIT": "scripts have no transactions",
    "STALE_MEMBER_EPOCH": "consumer groups (KIP-848) only",
    "FENCED_MEMBER_EPOCH": "consumer groups (KIP-848) only",
    "UNRELEASED_INSTANCE_ID": "consumer groups (KIP-848) only",
    "UNSUPPORTED_ASSIGNOR": "consumer groups (KIP-848) only",
    "INVALID_REGULAR_EXPRESSION": "consumer groups (KIP-848) only",
}

#: Transitions of `states.TRANSITIONS` that no script can take, and why.
UNREACHABLE_TRANSITIONS: dict[tuple[str, str], str] = {
    ("Stable", "over-capacity"): "a group that is loaded, and scripts begin with none",
    ("Stable", "downgraded"): "a consumer group becomes a classic one, and scripts of this kind have none",
    ("PreparingRebalance", "failed"): "not in Kafka 4.3.1, and scripts keep to the letter",
    ("CompletingRebalance", "failed"): "not in Kafka 4.3.1, and scripts keep to the letter",
    ("Stable", "failed"): "not in Kafka 4.3.1, and scripts keep to the letter",
}

ALL_ERRORS = tuple(error.name for error in Error)
ALL_TRANSITIONS: tuple[tuple[str, str], ...] = tuple(
    (before.value, cause.value) for before, row in TRANSITIONS.items() for cause in row
)
