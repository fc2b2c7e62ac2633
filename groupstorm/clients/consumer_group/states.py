"""The states of a member of a consumer group, and what each means, as literal tables (MemberState, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class MemberState(Enum):
    """Kafka's MemberState."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    #: The next heartbeat joins.
    JOINING = "JOINING"
    #: The broker has sent another assignment than the member has.
    RECONCILING = "RECONCILING"
    #: The next heartbeat says that the member has its assignment.
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STABLE = "STABLE"
    #: The broker has removed the member. It calls onPartitionsLost, then it joins again.
    FENCED = "FENCED"
    #: The application unsubscribes or closes: callbacks run.
    PREPARE_LEAVING = "PREPARE_LEAVING"
    #: The next heartbeat leaves.
    LEAVING = "LEAVING"
    FATAL = "FATAL"
    #: The member has left because nobody polled. It joins again at the next poll().
    STALE = "STALE"


_S = MemberState

#: State -> the states from which a member reaches it. A member that stays in its state is always allowed.
REACHED_FROM: Mapping[MemberState, frozenset[MemberState]] = {
    _S.UNSUBSCRIBED: frozenset({_S.PREPARE_LEAVING, _S.LEAVING, _S.FENCED}),
    _S.JOINING: frozenset({_S.UNSUBSCRIBED, _S.FENCED, _S.STALE}),
    _S.RECONCILING: frozenset({_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE}),
    _S.ACKNOWLEDGING: frozenset({_S.RECONCILING}),
    _S.STABLE: frozenset({_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING}),
    _S.FENCED: frozenset(
        {_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE, _S.PREPARE_LEAVING, _S.LEAVING}
    ),
    _S.PREPARE_LEAVING: frozenset({_S.UNSUBSCRIBED, _S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE}),
    _S.LEAVING: frozenset({_S.PREPARE_LEAVING}),
    _S.FATAL: frozenset(
        {
            _S.UNSUBSCRIBED,
            _S.JOINING,
            _S.RECONCILING,
            _S.ACKNOWLEDGING,
            _S.STABLE,
            _S.PREPARE_LEAVING,
            _S.LEAVING,
        }
    ),
    _S.STALE: frozenset({_S.LEAVING}),
}

#: The member sends a heartbeat without waiting for the interval (shouldHeartbeatNow).
HEARTBEATS_AT_ONCE = (_S.JOINING, _S.ACKNOWLEDGING, _S.LEAVING)
#: The member is not in the group and sends no heartbeats (shouldSkipHeartbeat, isNotInGroup).
NOT_IN_GROUP = (_S.UNSUBSCRIBED, _S.FENCED, _S.FATAL, _S.STALE)
#: The member takes a new assignment (canHandleNewAssignment).
TAKES_ASSIGNMENTS = REACHED_FROM[_S.RECONCILING]
#: The member is on its way out of the group (isLeavingGroup).
ON_ITS_WAY_OUT = (_S.PREPARE_LEAVING, _S.LEAVING)


class InvalidTransition(Exception):
    """Kafka's IllegalStateException of a transition that `REACHED_FROM` does not have."""
