"""Client-side assignors: Kafka's as of 4.3.1, those of the design documents, and optimal-sticky.

* `indexed` is the common part of assignors that work on partition numbers (`index`).
* `memoryless`: Kafka's range and roundrobin.
* `sticky`: Kafka's two sticky assignors. They settle who owned a partition (`claims`) and know racks
  (`racks`); equal subscriptions take the form of `constrained`, all others that of `general`.
* `phases` (KAFKA-9987, KAFKA-12464) and `optimal` are plans; `planned` does the rest. `optimal` uses
  `network` and `bands`.
* `streamjoin` (KIP-315) assigns partition numbers across topics.
"""

from __future__ import annotations
