"""Kafka Streams' task assignors: who runs which task, who keeps a standby, what crosses racks.

Tasks and clients are numbers in here, in the order in which Kafka sorts them (`model.Group`), so that
comparing numbers is comparing TaskIds and ProcessIds.

* `model`, `ids`, `lags`: what is known of a group, and the placement that an assignor works on;
* `highavailability` (with `movements` and `balancing`): Kafka's default, KIP-441 as it was shipped;
* `sticky`: the legacy assignor and the one that is used when lags are unknown; `publicsticky`: KIP-924's;
* `draft`: KIP-441's draft, which was not shipped;
* `standbys`: where replicas go, by load or by client tags (KIP-708);
* `rackaware`, `costs`, `graphs`, `cyclecanceling`, `collapsed`, `flow`: KIP-925;
* `standbyplacement`: KIP-925's three ways to place standbys;
* `threads`: tasks to the threads of a client; `leader`: a whole rebalance, bytes in and bytes out;
* `cases`: `groupstorm assign --mode streams`.
"""

from __future__ import annotations
