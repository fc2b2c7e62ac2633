"""The states of a classic group, and every change between them.

Rule 1: everything that moves a group from one state to another stands in `TRANSITIONS`. `next_state` is its
only reader, and `changes.transition` the only caller of `next_state`.
Rule 2: the table says what *may* happen, not when. The modules that handle requests and timers hold the
conditions (`joins`, `rebalances`, `sessions`, ...).

Sources are Kafka 4.3.1: GMM is GroupMetadataManager; the allowed pairs of states are those of
ClassicGroupState. Kafka's Dead is no state here: a coordinator that is unloaded ends with its
process, and a group that does not exist is described as Dead (DescribeGroups).
"""

from __future__ import annotations

from typing import Final

from groupstorm.coordinator.errors import IllegalTransition
from groupstorm.trace.events.group_states import Cause, GroupState

#: The name that DescribeGroups gives to a group that does not exist.
DEAD = "Dead"

#: Looked up on the class, a member costs as much as a call before Python 3.12.
EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
MEMBER_UPDATED: Final = Cause.MEMBER_UPDATED

TRANSITIONS: dict[GroupState, dict[Cause, GroupState]] = {
    EMPTY: {
        Cause.NEW_MEMBER: PREPARING_REBALANCE,  # GMM.classicGroupJoinNewDynamicMember, below JoinGroup 4
        Cause.PENDING_MEMBER: PREPARING_REBALANCE,  # GMM.classicGroupJoinExistingMember
        Cause.STATIC_MEMBER: PREPARING_REBALANCE,  # GMM.classicGroupJoinNewStaticMember
    },
    PREPARING_REBALANCE: {
        Cause.ALL_JOINED: COMPLETING_REBALANCE,  # GMM.maybeCompleteJoinPhase
        Cause.REBALANCE_TIMEOUT: COMPLETING_REBALANCE,  # GMM.maybeCompleteJoinElseSchedule
        Cause.INITIAL_DELAY: COMPLETING_REBALANCE,  # GMM.tryCompleteInitialRebalanceElseSchedule
        Cause.NO_MEMBERS: EMPTY,  # ClassicGroup.initNextGeneration
        Cause.FAILED: EMPTY,  # not in Kafka: changes.rescue
    },
    COMPLETING_REBALANCE: {
        Cause.ASSIGNED: STABLE,  # GMM.classicGroupSyncToClassicGroup
        Cause.APPEND_FAILED: PREPARING_REBALANCE,  # GMM.classicGroupSyncToClassicGroup
        Cause.NEW_MEMBER: PREPARING_REBALANCE,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.PENDING_MEMBER: PREPARING_REBALANCE,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.STATIC_MEMBER: PREPARING_REBALANCE,  # GMM.updateStaticMemberThenRebalanceOrCompleteJoin
        MEMBER_UPDATED: PREPARING_REBALANCE,  # GMM.classicGroupJoinExistingMember
        Cause.LEFT: PREPARING_REBALANCE,  # GMM.classicGroupLeaveToClassicGroup, pending ids included
        Cause.SESSION_EXPIRED: PREPARING_REBALANCE,  # GMM.removeMemberAndUpdateClassicGroup
        Cause.SYNC_TIMEOUT: PREPARING_REBALANCE,  # GMM.expirePendingSync
        Cause.FAILED: EMPTY,  # not in Kafka: changes.rescue
    },
    STABLE: {
        Cause.NEW_MEMBER: PREPARING_REBALANCE,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.PENDING_MEMBER: PREPARING_REBALANCE,  # GMM.addMemberThenRebalanceOrCompleteJoin
        Cause.STATIC_MEMBER: PREPARING_REBALANCE,  # as in CompletingRebalance, or the protocol changes
        MEMBER_UPDATED: PREPARING_REBALANCE,  # GMM.classicGroupJoinExistingMember
        Cause.LEADER_REJOINED: PREPARING_REBALANCE,  # GMM.classicGroupJoinExistingMember
        Cause.LEFT: PREPARING_REBALANCE,  # GMM.classicGroupLeaveToClassicGroup, pending ids included
        Cause.SESSION_EXPIRED: PREPARING_REBALANCE,  # GMM.removeMemberAndUpdateClassicGroup
        Cause.SYNC_TIMEOUT: PREPARING_REBALANCE,  # GMM.expirePendingSync
        Cause.OVER_CAPACITY: PREPARING_REBALANCE,  # GMM.onLoaded
        Cause.DOWNGRADED: PREPARING_REBALANCE,  # GMM.convertToClassicGroup
        Cause.FAILED: EMPTY,  # not in Kafka: changes.rescue
    },
}


def next_state(group: str, state: GroupState, cause: Cause) -> GroupState:
    """The state that ``cause`` leads to; `IllegalTransition` if the table has no such row."""
    after = TRANSITIONS[state].get(cause)
    if after is None:
        raise IllegalTransition(f"group {group!r} cannot leave {state} because of {cause.value!r}")
    return after
