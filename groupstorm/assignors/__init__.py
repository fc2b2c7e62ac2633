"""Assignors: Kafka's and others as pure functions over plain data, which partitions each member gets.

No clock, no I/O, no asyncio. `userdata` decodes and encodes the bytes inside JoinGroup and SyncGroup;
`consumer` holds the assignors; `registry` finds them by Kafka's names; `leader` is the leader's side, bytes
in and bytes out. `server` has the broker's assignors (KIP-848), `streams` the task assignors of Kafka
Streams.
"""

from __future__ import annotations
