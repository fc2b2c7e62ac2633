"""What each error of ConsumerGroupHeartbeat means to Kafka's Java consumer (4.3.1), as a literal table.

It is read from AbstractHeartbeatRequestManager.onErrorResponse and ConsumerHeartbeatRequestManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from groupstorm.coordinator.errors import Error


class Reaction(Enum):
    """What a member does with an error. After each of them the next heartbeat is full."""

    FIND_COORDINATOR = "look the coordinator up; send as soon as it is known"
    RETRY = "send again after the backoff"
    FENCED = "give the partitions up and join again at once"
    REPORTED = "poll() throws; send again after the backoff"
    LEFT = "a member that has left is content; to others it is fatal"
    FATAL = "poll() throws; the member ends"


#: Every error that is not here is `Reaction.FATAL`.
REACTIONS: Mapping[Error, Reaction] = {
    Error.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    Error.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    Error.FENCED_MEMBER_EPOCH: Reaction.FENCED,
    Error.UNKNOWN_MEMBER_ID: Reaction.FENCED,
    Error.TOPIC_AUTHORIZATION_FAILED: Reaction.REPORTED,
    Error.GROUP_ID_NOT_FOUND: Reaction.LEFT,
}
#: Errors that say that the coordinator does not have the member any more.
FENCING = frozenset(error for error, reacts in REACTIONS.items() if reacts is Reaction.FENCED)


def reaction(error: Error) -> Reaction:
    return REACTIONS.get(error, Reaction.FATAL)
