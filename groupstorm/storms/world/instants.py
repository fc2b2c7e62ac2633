"""The order of what happens at one instant: by kind, then by member, then as it was scheduled.

docs/order-of-time.md has the reasons. The order is part of every scheduled call, as a number. When a call was
scheduled decides nothing between members: heartbeats that are computed are never scheduled at all.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_MEMBER_BITS: Final = 20
ORDER_BITS: Final = _MEMBER_BITS + 4


class Kind(IntEnum):
    """The kinds of calls, in their order at one instant."""

    #: Steps of the scenario, timers of clients and applications.
    DUE = 0
    #: A heartbeat or a background commit.
    PERIODIC_REQUEST_LEAVES = 1
    COMMIT_ARRIVES = 2
    HEARTBEAT_ARRIVES = 3
    REQUEST_ARRIVES = 4
    RESPONSE_ARRIVES = 5
    #: The network thread of a client of group.protocol=consumer.
    NETWORK_THREAD = 6
    #: An application's poll().
    POLL = 7
    #: The coordinator's timers run behind the requests of the same instant.
    COORDINATOR_TIMER = 8


def order_of(kind: Kind, member: int = 0) -> int:
    """The place of a member's calls among those of one instant."""
    return int(kind) << _MEMBER_BITS | member


#: Behind all members' calls.
COORDINATOR_TIMERS: Final = order_of(Kind.COORDINATOR_TIMER)


def moment_of(time_us: int, order: int) -> int:
    """The place of a call in the whole run: times in microseconds and orders at one of them as one number."""
    return time_us << ORDER_BITS | order
