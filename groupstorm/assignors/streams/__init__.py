"""Kafka Streams' task assignors: the client of each active task and standby, and the traffic between racks.

Tasks and clients are numbers here, in the order in which Kafka sorts them (`model.StreamsGroup`), so
comparing numbers is comparing TaskIds and ProcessIds.

* `model`: the known state of a group, and the placement that an assignor works on;
* `highavailability`: Kafka's default, KIP-441 as it was shipped;
* `sticky`: the legacy assignor, the one for unknown lags, and that of KIP-924;
* `draft`: KIP-441's draft, which was not shipped;
* `standbys`: placement of replicas by load, by client tags (KIP-708), or in KIP-925's other two ways;
* `rackaware`, `costs`, `graphs`, `collapsed`: KIP-925;
* `threads`: the tasks of a client's threads; `leader`: a whole rebalance, bytes in and bytes out.
"""

from __future__ import annotations
