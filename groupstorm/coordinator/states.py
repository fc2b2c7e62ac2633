"""The states of a classic group, and every change between them.

Rule 1: all that moves a group from one state to another stands in `TRANSITIONS`; `next_state`
is the only reader, and `shard.Shard.transition` its only caller.
Rule 2: the table says what *may* happen, not when: the conditions stand where the events are
handled (`joins`, `syncs`, `leaves`, `rebalances`).

Sources are Kafka 4.3.1: GMM is GroupMetadataManager; the allowed pairs of states are those of
ClassicGroupState. Kafka's Dead is no state here: a coordinator that is unloaded ends with its
process, and a group that does not exist is described as Dead (DescribeGroups).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from groupstorm.coordinator.faults import IllegalTransition


class GroupState(StrEnum):
    """A group's state, under the names that DescribeGroups uses."""

    #: No members; committed offsets may remain.
    EMPTY = "Empty"
    #: A round is open: members join again, or miss it.
    PREPARING_REBALANCE = "PreparingRebalance"
    #: The round is closed: the leader's plan is awaited.
    COMPLETING_REBALANCE = "CompletingRebalance"
    #: Every member has, or can fetch, its assignment.
    STABLE = "Stable"


#: What DescribeGroups calls a group that does not exist.
DEAD = "Dead"


class Cause(StrEnum):
    """Why a group, a member or an id changed: the closed list of `cause` in the coordinator's events."""

    NEW_MEMBER = "new-member"  # a member joined that the group did not have
    PENDING_MEMBER = "pending-member"  # it joined with the id that MEMBER_ID_REQUIRED gave it
    STATIC_MEMBER = "static-member"  # a static member: new, or back under a new id
    MEMBER_UPDATED = "member-updated"  # a member joined again with other protocols or metadata
    LEADER_REJOINED = "leader-rejoined"  # the leader joined again, with whatever metadata
    LEFT = "left"  # LeaveGroup
    SESSION_EXPIRED = "session-expired"  # no heartbeat for session.timeout.ms
    NEW_MEMBER_TIMEOUT = "new-member-timeout"  # a new member was parked for five minutes
    REBALANCE_TIMEOUT = "rebalance-timeout"  # the round was open for the longest rebalance timeout
    SYNC_TIMEOUT = "sync-timeout"  # joined, but sent no SyncGroup for the rebalance timeout
    GROUP_FULL = "group-full"  # refused with GROUP_MAX_SIZE_REACHED, and forgotten
    ALL_JOINED = "all-joined"  # every member has joined and no id is pending
    INITIAL_DELAY = "initial-delay"  # group.initial.rebalance.delay.ms is over
    NO_MEMBERS = "no-members"  # a round closed with nobody in it
    ASSIGNED = "assigned"  # the leader's plan is written
    APPEND_FAILED = "append-failed"  # the records could not be written
    DELETED = "deleted"  # DeleteGroups
    EXPIRED = "expired"  # an empty group whose offsets have all expired (offsets.retention.minutes)
    OVER_CAPACITY = "over-capacity"  # loaded with more members than group.max.size
    UNLOADED = "unloaded"  # its coordinator moved away, or ended


#: Looked up on the class, a member costs as much as a call before Python 3.12.
EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
MEMBER_UPDATED: Final = Cause.MEMBER_UPDATED

_PREPARING = PREPARING_REBALANCE
_COMPLETING = COMPLETING_REBALANCE

TRANSITIONS: dict[GroupState, dict[Cause, GroupState]] = {
    EMPTY: {
        Cause.NEW_MEMBER: _PREPARING,  # GMM.classicGroupJoinNewDynamicMember, below JoinGroup 4
        Cause.PENDING_MEMBER: _PREPARING,  # GMM.classicGroupJoinExistingMember
        Cause.STATIC_MEMBER: _PREPARING,  # GMM.classicGroupJoinNewStaticMember
    },
    _PREPARING: {
        Cause.ALL_JOINED: _COMPLETING,  # GMM.maybeCompleteJoinPhase
        Cause.REBALANCE_TIMEOUT: _COMPLETING,  # GMM.maybeCompleteJoinElseSchedule
        Cause.INITIAL_DELAY: _COMPLETING,  # GMM.tryCompleteInitialRebalanceElseSchedule
        Cause.NO_MEMBERS: EMPTY,  # ClassicGroup.initNextGeneration
    },
    _COMPLETING: {
        Cause.ASSIGNED: STABLE,  # GMM.classicGroupSyncToClassicGroup
        Cause.APPEND_FAILED: _PREPARING,  # GMM.classicGroupSyncToClassicGroup
        Cause.NEW_MEMBER: _PREPARING,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.PENDING_MEMBER: _PREPARING,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.STATIC_MEMBER: _PREPARING,  # GMM.updateStaticMemberThenRebalanceOrCompleteJoin
        Cause.MEMBER_UPDATED: _PREPARING,  # GMM.classicGroupJoinExistingMember
        Cause.LEFT: _PREPARING,  # GMM.classicGroupLeaveToClassicGroup, pending ids included
        Cause.SESSION_EXPIRED: _PREPARING,  # GMM.removeMemberAndUpdateClassicGroup
        Cause.SYNC_TIMEOUT: _PREPARING,  # GMM.expirePendingSync
    },
    STABLE: {
        Cause.NEW_MEMBER: _PREPARING,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.PENDING_MEMBER: _PREPARING,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.STATIC_MEMBER: _PREPARING,  # ...ThenRebalanceOrCompleteJoin: new, or the protocol would change
        Cause.MEMBER_UPDATED: _PREPARING,  # GMM.classicGroupJoinExistingMember
        Cause.LEADER_REJOINED: _PREPARING,  # GMM.classicGroupJoinExistingMember
        Cause.LEFT: _PREPARING,  # GMM.classicGroupLeaveToClassicGroup, pending ids included
        Cause.SESSION_EXPIRED: _PREPARING,  # GMM.removeMemberAndUpdateClassicGroup
        Cause.SYNC_TIMEOUT: _PREPARING,  # GMM.expirePendingSync
        Cause.OVER_CAPACITY: _PREPARING,  # GMM.onLoaded
    },
}


def next_state(group: str, state: GroupState, cause: Cause) -> GroupState:
    """The state that ``cause`` leads to; `IllegalTransition` where the table has no such row."""
    after = TRANSITIONS[state].get(cause)
    if after is None:
        raise IllegalTransition(f"group {group!r} cannot leave {state} because of {cause.value!r}")
    return after


def mermaid() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    causes: dict[tuple[GroupState, GroupState], list[str]] = {}
    for before, row in TRANSITIONS.items():
        for cause, after in row.items():
            causes.setdefault((before, after), []).append(cause)
    arrows = [f"    {before} --> {after}: {'<br/>'.join(names)}" for (before, after), names in causes.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {EMPTY}", *arrows]) + "\n"
