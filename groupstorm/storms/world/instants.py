"""The order of what happens at one instant: by kind, then by member, then as it was scheduled.

Storms count integer microseconds, and with constant latencies many things happen in the same one. Their
order is a number, part of every scheduled call. It follows from the kind of the call and never from when
the call was scheduled: heartbeats that are computed are never scheduled at all, and ``--exact``, which
sends each of them, gives the same trace. What has no latency follows at once, before the rest of the
instant.

A session that ends at the instant at which a heartbeat arrives goes on, because the heartbeat comes first;
so does a round that times out as its last member joins. `groupstorm serve` keeps to this too. Sessions that
end in one millisecond end in the order in which the last requests of their members arrived.

``Clock.passed_us`` says until when things of a kind have happened: what is computed asks it in place of
"now".
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_MEMBER_BITS: Final = 20
ORDER_BITS: Final = _MEMBER_BITS + 4


class Kind(IntEnum):
    """The kinds of calls, in their order at one instant."""

    #: Steps of the scenario, timers of clients and applications, ends of pauses: they apply to all
    #: else at the instant.
    DUE = 0
    #: A heartbeat or a background commit.
    PERIODIC_REQUEST_LEAVES = 1
    #: A commit comes before a heartbeat: a client that has both to send begins with it (RequestManagers).
    COMMIT_ARRIVES = 2
    HEARTBEAT_ARRIVES = 3
    REQUEST_ARRIVES = 4
    RESPONSE_ARRIVES = 5
    #: The network thread of a client of group.protocol=consumer sees the responses that have come.
    NETWORK_THREAD = 6
    #: An application's poll() takes everything that has happened by then.
    POLL = 7
    #: The coordinator's timers tick in milliseconds (SystemTimer), behind the requests of the same instant
    #: (CoordinatorRuntime).
    COORDINATOR_TIMER = 8


def order_of(kind: Kind, member: int = 0) -> int:
    """The place of a member's calls among those of one instant."""
    return int(kind) << _MEMBER_BITS | member


#: Behind all members' calls.
COORDINATOR_TIMERS: Final = order_of(Kind.COORDINATOR_TIMER)


def moment_of(time_us: int, order: int) -> int:
    """The place of a call in the whole run: times in microseconds and orders at one of them as one number."""
    return time_us << ORDER_BITS | order
