"""Who gets what: Kafka's assignors as pure functions over plain data.

No clock, no I/O, no asyncio. `userdata` turns the bytes inside JoinGroup and SyncGroup into
data and back; `consumer` holds the assignors; `registry` finds them by Kafka's names; `leader`
is the leader's door, bytes in and bytes out.
"""

from __future__ import annotations
