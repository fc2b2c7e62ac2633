"""Heartbeats and background commits: sent periodically, computed as long as nothing disturbs them.

In a group at rest these requests change nothing but the session's deadline. With ``--exact`` all are sent,
and the trace is the same to the byte.

A series of heartbeats belongs to one generation and one connection. It begins when the member has joined
(with some client profiles when it has its assignment), and ends when the member joins again, leaves,
crashes, is paused or loses its connection, or when the leader's assignor takes the client's lock. A series
of commits runs while the application polls, the member owns partitions and no rejoin is due; a commit
carries what the application had finished at its last poll() before it left. The k-th request leaves at
``start + k * interval``, a heartbeat a little later (docs/heartbeat-lateness.md). Its latency is drawn by
counter from the seed, the process and the time at which it leaves, and stays below the interval, so that
"which arrived last by time t" is a division and at most one draw.

Requests rest when a series begins or a request was accepted, and

* the group is Stable in the member's generation, with the member in it, and no write is under way;
* the connection passes requests and responses, and no request is on its way;
* interval, largest lateness and largest latency together stay below session.timeout.ms.

While they rest the coordinator lets the session go on (``suspend_session``). All wake at once when the
group leaves Stable, topics change, or a write begins that takes a second or fails; one member's wake when
it is removed, replaced or brought to another epoch, or when its series ends. Then requests that have
arrived are counted, the session runs on from the last one (``resume_session``), and what the last commit
carried is committed. A request under way arrives as an event. Before somebody looks at the offsets of
partitions, their owner's arrived commits are settled.

Commits by hand have no series: `HandCommits` computes them in both modes. Members of
group.protocol=consumer rest in the same way, by the client's own timers
(`consumer_group.quiet_heartbeats`), but not where heartbeats bring other members further, or wait for the
answer before. A poll() that may come too late is an event in both modes.

The traces are equal because an accepted request leaves only a deadline, a committed position and a number,
and waking sets all three. Whoever adds an event or a fault asks what a resting member would miss, and wakes
it.
"""

from __future__ import annotations

from groupstorm.storms.world.periodic_requests.requests import PeriodicRequests
from groupstorm.storms.world.periodic_requests.resting import RestingMembers
from groupstorm.storms.world.periodic_requests.schedule import SHARES, DrawnSums, ProcessTimer, timer_sums
from groupstorm.storms.world.periodic_requests.series import Sender

__all__ = [
    "SHARES",
    "DrawnSums",
    "PeriodicRequests",
    "ProcessTimer",
    "RestingMembers",
    "Sender",
    "timer_sums",
]
