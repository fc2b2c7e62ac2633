"""The records that the coordinator writes to the offsets topic, and the policy of their appends.

Records are values: nothing here makes bytes of them. Kafka: GroupMetadataValue, OffsetCommitValue. Each wing
of the newer protocols has record classes of its own, each of one entry of a group's state; their names and
fields stand in the journal of `serve --data`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.messages import CommittedOffset


class MemberRecord(NamedTuple):
    """A member as its group's record holds it (GroupMetadataValue.MemberMetadata).

    ``metadata`` is that of the chosen protocol alone: a restored group knows no other.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    metadata: bytes
    assignment: bytes


class GroupMetadataRecord(NamedTuple):
    """A generation of a group of ``members`` members under ``leader``.

    A group without members has no leader and, in its first record, no protocol type (Kafka writes "").
    ``roster`` holds the members themselves if the coordinator was asked for whole records.
    ``state_since_ms``: when the group came into the state that this record is written in.
    """

    group: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: int
    roster: tuple[MemberRecord, ...] = ()
    state_since_ms: int = 0


class GroupTombstone(NamedTuple):
    """The group no longer exists."""

    group: str


class OffsetCommitRecord(NamedTuple):
    """A committed position; ``committed`` None is a tombstone."""

    group: str
    topic: str
    partition: int
    committed: CommittedOffset | None
    committed_at_ms: int = 0
    expires_at_ms: int | None = None
    """Set only by versions of OffsetCommit that say how long (2-4)."""
    producer_id: int | None = None
    """The producer of the transaction that the offset waits for."""


class TransactionEndRecord(NamedTuple):
    """The marker that commits or drops a producer's pending offsets."""

    producer_id: int
    is_commit: bool


class EntryRecord(Protocol):
    """One entry of a group's state. The fields in front of ``value`` name it; ``value`` None is a
    tombstone."""

    @property
    def _fields(self) -> tuple[str, ...]: ...

    @property
    def group(self) -> str: ...

    @property
    def value(self) -> Any: ...

    def __getitem__(self, index: int, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class WingTypes(NamedTuple):
    """The classes of which a wing makes what every group of the newer protocols has.

    ``new_member``: a member. ``facts``: the part of it that its own requests determine; ``progress``: the
    part that reconciliation determines. The others are records: of these parts, of a member's target, of the
    group epoch for which the targets were computed, and of what is true of the whole group.
    """

    new_member: type[Any]
    facts: type[Any]
    progress: type[Any]
    member: type[Any]
    current: type[Any]
    target: type[Any]
    target_epoch: type[Any]
    group: type[Any]


def key_of(record: EntryRecord) -> Hashable:
    """The entry that the record is about, within its group."""
    named = record._fields.index("value")
    return type(record), *(record[index] for index in range(1, named))


Record = GroupMetadataRecord | GroupTombstone | OffsetCommitRecord | TransactionEndRecord | EntryRecord


class AppendCause(StrEnum):
    """Why records are written."""

    EMPTY_GROUP = "empty-group"  # a group is new, or its last member has gone
    STATIC_MEMBER = "static-member"  # a static member came back and the group stays as it is
    GENERATION = "generation"  # the leader's assignments
    OFFSET_COMMIT = "offset-commit"
    TXN_OFFSET_COMMIT = "txn-offset-commit"  # offsets that wait for a transaction
    TRANSACTION_END = "transaction-end"  # a transaction is committed or aborted
    TOPICS_DELETED = "topics-deleted"  # offsets of topics that are gone
    OFFSETS_DELETED = "offsets-deleted"  # OffsetDelete
    GROUP_DELETED = "group-deleted"  # DeleteGroups
    EXPIRED = "expired"  # offsets.retention.minutes are over
    MEMBER_HEARTBEAT = "member-heartbeat"  # a member joined, changed or came further
    GROUP_DOWNGRADED = "group-downgraded"  # a consumer group becomes a classic one
    MEMBERS_REMOVED = "members-removed"  # members left or were fenced
    REGEXES_RESOLVED = "regexes-resolved"  # topics that match subscribed regular expressions
    TARGETS_COMPUTED = "targets-computed"  # the initial delay of a streams group is over
    STATE_PARTITIONS = "state-partitions"  # of a share group: the persister has answered, or topics are gone
    DESCRIPTION = "description"  # of a topology: the plugin may hold it, holds it, or has refused it


#: The outcome of an append: the records of one write and their cause -> (delay in ms until it is committed,
#: the error it ends in, or None). An append never completes before an earlier one of its group.
AppendPolicy = Callable[[Sequence[Record], AppendCause], tuple[int, Error | None]]


def immediate(records: Sequence[Record], cause: AppendCause) -> tuple[int, Error | None]:
    """Every append is committed at once."""
    del records, cause
    return 0, None


#: Errors of an append -> errors that clients of the group protocol know.
_APPEND_ERRORS = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}


def group_append_error(error: Error) -> Error:
    """The error of a join or sync whose group could not be written
    (GMM.appendGroupMetadataErrorToResponseError)."""
    return _APPEND_ERRORS.get(error, error)


def operation_error(error: Error) -> Error:
    """The error of any other request (CoordinatorOperationExceptionHelper.handleOperationException)."""
    if error is Error.NETWORK_EXCEPTION:
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    return _APPEND_ERRORS.get(error, error)
