"""The coordinator's events: exactly one typed event for every change of its state.

Events carry no time: the driver of the coordinator knows when it called.
``member`` is the client id, ``member_id`` the id that the coordinator gave to the member.
"""

from __future__ import annotations

from typing import NamedTuple

from groupstorm.trace.events.scenario import PartitionsDeleted


class GroupCreated(NamedTuple):
    """A group begins: by a first join, or by a commit from outside of any group."""

    group: str
    cause: str  # join | offset-commit | loaded (from the records of its last coordinator)


class GroupStateChanged(NamedTuple):
    """One row of the transition table was taken, or a consumer group's state follows from a change.

    ``cause`` says why (`group_states.Cause`). ``member_id`` names the member that caused the change; None: a
    timer of the group did. In CompletingRebalance ``generation`` is the new one, and ``protocol`` and
    ``leader`` are the chosen ones. ``count`` members are in the group. In an imported trace
    ``previous_state`` and ``cause`` may be "unknown", and ``generation`` and ``count`` null.
    """

    group: str
    previous_state: str
    state: str
    generation: int
    cause: str
    member_id: str | None
    protocol: str | None
    leader: str | None
    count: int | None  # type: ignore[assignment]  # the column's name hides tuple.count, which is not used


class MemberPending(NamedTuple):
    """An id was handed out with MEMBER_ID_REQUIRED and is not used yet (KIP-394)."""

    group: str
    member: str
    member_id: str


class PendingMemberRemoved(NamedTuple):
    """A handed-out id will not be used: it left, its session expired, the group is full, or it failed."""

    group: str
    member_id: str
    cause: str


class MemberAdded(NamedTuple):
    """``cause``: new-member (no id round trip), pending-member (with the id), static-member."""

    group: str
    member: str
    member_id: str
    instance: str | None
    generation: int | None
    cause: str


class MemberReplaced(NamedTuple):
    """A static member came back: the same instance under a new id (KIP-345)."""

    group: str
    member: str
    member_id: str
    previous_member_id: str
    instance: str
    generation: int | None


class MemberUpdated(NamedTuple):
    """A member joined again with other protocols or metadata."""

    group: str
    member: str
    member_id: str
    generation: int | None


class MemberRemoved(NamedTuple):
    """A member is out of the group; ``cause`` says why."""

    group: str
    member: str
    member_id: str
    instance: str | None
    generation: int | None
    cause: str
    """left, session-expired, rebalance-timeout, sync-timeout, new-member-timeout, group-full, or failed."""


class ClientReason(NamedTuple):
    """The client said why it joined or left (KIP-800, Kafka 3.2 and newer); ``detail`` has its words."""

    group: str
    member: str
    generation: int | None
    detail: str
    member_id: str | None = None  # null in an imported trace


class JoinParked(NamedTuple):
    """A JoinGroup waits for the round to complete."""

    group: str
    member: str
    member_id: str
    generation: int


class JoinAnswered(NamedTuple):
    """A JoinGroup was answered, at once or after it was parked."""

    group: str
    member: str
    member_id: str
    generation: int
    error: str | None


class SyncParked(NamedTuple):
    """A SyncGroup waits for the leader's plan."""

    group: str
    member: str
    member_id: str
    generation: int


class SyncAnswered(NamedTuple):
    """A SyncGroup was answered. ``partitions``: the decoded assignment; None if the bytes are not a
    ConsumerProtocol assignment."""

    group: str
    member: str
    member_id: str
    generation: int | None
    error: str | None
    partitions: tuple[str, ...] | None


class InitialDelayExtended(NamedTuple):
    """A new member joined during group.initial.rebalance.delay.ms: the group waits once more."""

    group: str
    duration_us: int


class GroupConverted(NamedTuple):
    """A live group changed its protocol (KIP-848's migration): a classic group was upgraded, or a consumer
    group downgraded. ``generation``: of the classic group, and every epoch of an upgraded one."""

    group: str
    generation: int
    cause: str  # upgraded | downgraded


class GroupEpochBumped(NamedTuple):
    """A consumer group noticed a change: of its members, their subscriptions, or the topics behind them.
    ``generation``: the new group epoch."""

    group: str
    generation: int


class TargetAssigned(NamedTuple):
    """The targets of a consumer group were computed for the group epoch ``generation``. Those of ``count``
    members were written, because they changed."""

    group: str
    generation: int
    count: int | None  # type: ignore[assignment]  # the column's name hides tuple.count, which is not used


class MemberReconciled(NamedTuple):
    """A member of a consumer or streams group came further towards its target. ``generation``: its member
    epoch; ``state``: STABLE, UNREVOKED_PARTITIONS or UNRELEASED_PARTITIONS; ``partitions``: those that it
    has, or that its active tasks read."""

    group: str
    member: str
    member_id: str
    generation: int
    state: str
    partitions: tuple[str, ...]
    revoking: tuple[str, ...]


class AppendFailed(NamedTuple):
    """Records could not be written to the offsets topic. What a consumer group did for them is undone."""

    group: str
    error: str
    cause: str  # `records.AppendCause`


class OperationFailed(NamedTuple):
    """An operation of the coordinator broke off with an exception; ``detail`` is its text.

    The request behind the operation, if there is one, is answered UNKNOWN_SERVER_ERROR. Then the group goes
    on as it is, or it fails: other parked requests are answered COORDINATOR_NOT_AVAILABLE, and every member
    is removed (cause failed).
    """

    group: str
    member_id: str | None
    generation: int
    detail: str


class OffsetsCommitted(NamedTuple):
    """Offsets were committed, or refused. ``member_id`` None: the sender is no member. ``error``: the first
    error. In an imported trace ``member_id`` and ``generation`` are null: no record says who commits."""

    group: str
    member_id: str | None
    generation: int | None
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    error: str | None


class GroupDeleted(NamedTuple):
    """The group no longer exists."""

    group: str
    cause: str


Event = (
    GroupCreated
    | GroupStateChanged
    | MemberPending
    | PendingMemberRemoved
    | MemberAdded
    | MemberReplaced
    | MemberUpdated
    | MemberRemoved
    | ClientReason
    | JoinParked
    | JoinAnswered
    | SyncParked
    | SyncAnswered
    | InitialDelayExtended
    | GroupConverted
    | GroupEpochBumped
    | TargetAssigned
    | MemberReconciled
    | AppendFailed
    | OperationFailed
    | OffsetsCommitted
    | GroupDeleted
    | PartitionsDeleted
)
