"""What the coordinator did: exactly one typed event for every change of its state.

Events carry no time: whoever drives the coordinator knows when it called.
``member`` is the client id, ``member_id`` the coordinator's id for it.
"""

from __future__ import annotations

from typing import NamedTuple


class GroupCreated(NamedTuple):
    """A first JoinGroup, or a commit from outside, made a group that was not there."""

    group: str
    cause: str  # join | offset-commit | loaded (from what its last coordinator had written)


class GroupStateChanged(NamedTuple):
    """One row of the transition table was taken.

    ``cause`` says why (`states.Cause`), ``member_id`` whose doing it was (None: a timer of
    the group). To CompletingRebalance: ``generation`` is the new one, ``protocol`` and
    ``leader`` what was chosen; ``count`` members are in the group.
    """

    group: str
    previous_state: str
    state: str
    generation: int
    cause: str
    member_id: str | None
    protocol: str | None
    leader: str | None
    count: int  # type: ignore[assignment]  # the column's name; nobody counts with tuple.count here


class MemberPending(NamedTuple):
    """An id was handed out with MEMBER_ID_REQUIRED and is not used yet (KIP-394)."""

    group: str
    member: str
    member_id: str


class PendingMemberRemoved(NamedTuple):
    """A handed-out id will not be used: it left, its session expired, or the group is full."""

    group: str
    member_id: str
    cause: str


class MemberAdded(NamedTuple):
    """``cause``: new-member (no id round trip), pending-member (with the id), static-member."""

    group: str
    member: str
    member_id: str
    instance: str | None
    generation: int
    cause: str


class MemberReplaced(NamedTuple):
    """A static member came back: the same instance under a new id (KIP-345)."""

    group: str
    member: str
    member_id: str
    previous_member_id: str
    instance: str
    generation: int


class MemberUpdated(NamedTuple):
    """A member joined again with other protocols or metadata."""

    group: str
    member: str
    member_id: str
    generation: int


class MemberRemoved(NamedTuple):
    """A member is out of the group; ``cause`` says why."""

    group: str
    member: str
    member_id: str
    instance: str | None
    generation: int
    cause: str  # left | session-expired | rebalance-timeout | sync-timeout | new-member-timeout | group-full


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
    """``partitions``: the assignment, decoded; None where it is none of the consumer protocol's."""

    group: str
    member: str
    member_id: str
    generation: int
    error: str | None
    partitions: tuple[str, ...] | None


class InitialDelayExtended(NamedTuple):
    """Somebody new came during group.initial.rebalance.delay.ms: the group waits once more."""

    group: str
    duration_us: int


class AppendFailed(NamedTuple):
    """Records could not be written to the offsets topic."""

    group: str
    error: str
    cause: str  # `records.AppendCause`


class OperationFailed(NamedTuple):
    """The coordinator met a state that cannot be and broke off (Kafka logs an exception there).

    ``detail`` is the sentence. The request behind it, if any, gets UNKNOWN_SERVER_ERROR; the
    group stays as it was at that moment: a round may be open that nobody closes.
    """

    group: str
    member_id: str | None
    generation: int
    detail: str


class OffsetsCommitted(NamedTuple):
    """``member_id`` None: committed from outside the group. ``error`` is the first one."""

    group: str
    member_id: str | None
    generation: int
    partitions: tuple[str, ...]
    positions: tuple[int, ...]
    error: str | None


class GroupDeleted(NamedTuple):
    """The group is no longer there."""

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
    | JoinParked
    | JoinAnswered
    | SyncParked
    | SyncAnswered
    | InitialDelayExtended
    | AppendFailed
    | OperationFailed
    | OffsetsCommitted
    | GroupDeleted
)
