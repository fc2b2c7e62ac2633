"""Client-side assignors: Kafka's as of 4.3.1, those of the design documents, and optimal-sticky.

* `indexed` is the common part of assignors that work on partition numbers.
* `memoryless`: Kafka's range and roundrobin.
* `sticky`: Kafka's two sticky assignors. They settle who owned a partition (`claims`) and know racks
  (`racks`); equal subscriptions take the form of `constrained`, all others that of `general`.
* `planned` is the common part of assignors that make a plan, with those of KAFKA-9987 and KAFKA-12464;
  `optimal` is another one, on a flow `network`.
* `streamjoin` (KIP-315) assigns partition numbers across topics.
"""

from __future__ import annotations
