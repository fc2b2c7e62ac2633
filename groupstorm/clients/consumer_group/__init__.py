"""A member of a consumer group (KIP-848), as Kafka's Java client 4.3.1 is one (`group.protocol=consumer`).

`member.ConsumerGroupMember` decides; there is no clock, socket or thread here. It stands on three layers, on
which a thread of Kafka Streams stands too (`groupstorm.clients.streams.group_member`):

* `reconciling`: it goes from one assignment to the next;
* `membership`: it joins, leaves, is fenced and fails;
* `heartbeating`: it sends heartbeats; `timing`: when one may leave.

`states` has the states and their transitions as a literal table, `groupstorm.clients.error_tables` has the
meaning of errors, `groupstorm.clients.operations` has the operations that a member asks its driver for.

A driver, in virtual time or over TCP, does this:

1. Find the coordinator, call `coordinator_found`; `subscribe`. With a pattern that the client matches, call
   `subscribe` again whenever other topics match.
2. After every call take `operations()` and carry them out, in their order.
3. Call `step(now)` when its last result says so, after 5 s at the latest (ConsumerNetworkThread), and after
   every other call. Hand what comes of each `SendHeartbeat` to `answered`: several may be under way.
4. Call `poll(now)` when the application enters poll() and, while it waits there, again every time that
   `poll_wait_ms` is over. Only in poll(), unsubscribe() or close() does the application run callbacks, one
   after the other in the order of `RunCallback`: `callback_begins`, the listener, `callback_ended`. Without a
   listener onPartitionsRevoked and onPartitionsLost end at once.
5. From `StopProcessing` on hand out no records of those partitions. After onPartitionsAssigned look the
   committed offsets of the added partitions up, and begin the auto-commit interval anew.
6. Hand what comes of `CommitWithEpoch` to `committed`. The member says whether and when to commit again.
7. unsubscribe(): `unsubscribe`, until `Left`. close(): commit, run `closing_callback()`, `close`, until
   `Left` or the timeout, then `end`.
"""

from __future__ import annotations
