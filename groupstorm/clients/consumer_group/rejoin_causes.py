"""Why a member of a consumer group joins (again), in the words of the events of classic members."""

from __future__ import annotations

from groupstorm.clients.causes import RejoinCause
from groupstorm.clients.consumer_group.states import MemberState
from groupstorm.coordinator.errors import NO_ERROR, Error

#: The states of a member that already knows that it has to join.
_JOINS_ANYWAY = frozenset({MemberState.FENCED, MemberState.JOINING, MemberState.STALE})


def rejoin_cause(before: MemberState, after: MemberState, error: Error = NO_ERROR) -> str | None:
    """The cause that a call of the member has given it to join; None if it has given none.

    ``error``: of the heartbeat response that was handed to `ConsumerGroupMember.answered`.
    """
    if before in _JOINS_ANYWAY or after not in _JOINS_ANYWAY:
        return None
    if after is MemberState.STALE:
        return RejoinCause.POLL_TIMEOUT
    return RejoinCause.FIRST_JOIN if error is NO_ERROR else error.name
