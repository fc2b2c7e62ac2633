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

Only a member in ordinary circumstances rests. Its group is Stable in its generation, no write of the group is
under way, its connection passes all, and its session outlasts the next heartbeat; before commits rest, it
has its partitions and their positions. Heartbeats that may be farther apart than the session are never
computed. The coordinator lets the session go on meanwhile (``suspend_session``).

Whatever may change an answer wakes the requests (`RestingMembers`): a write, a state of the group, topics.
So does whatever concerns the member alone: its removal, the end of a series, another share of work, a look
at its offsets. Then the requests that have arrived are counted, the session runs on from the last one
(``in_contact``), what the last commit carried is committed, and a request under way arrives as an event.
From then on requests are sent, until one was accepted in ordinary circumstances.

Commits by hand have no series: `HandCommits` computes them in both modes. Members of
group.protocol=consumer rest in the same way, by the client's own timers
(`consumer_group.quiet_heartbeats`), but not by a clock that drifts, nor where heartbeats bring other members
further, or wait for the answer before. A poll() that may come too late is an event in both modes.

The traces are equal because an accepted request leaves only a deadline, a committed position and a number,
and waking sets all three. Whoever adds an event or a fault asks what a resting member would miss, and wakes
it.
"""
