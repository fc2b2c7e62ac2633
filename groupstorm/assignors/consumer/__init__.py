"""Client-side assignors: Kafka's as of 4.3.1, those of the design documents, and optimal-sticky.

* `range` and `roundrobin`.
* `sticky` holds Kafka's two sticky assignors; they share the steps in `claims` (who owned what),
  `constrained` (equal subscriptions) and `general` (all others), which run on dense integers
  (`index`) and know racks (`racks`).
* `fourphase` (KAFKA-9987), `twophase` (KAFKA-12464) and `optimal` are plans for `planned`, which does
  what is around a plan; `owners` says who owned what.
* `optimal` uses `network`, `pouring`, `bands` (the best balance) and `stickiest` (the fewest moves).
* `streamjoin` (KIP-315) assigns partition numbers across topics.
"""

from __future__ import annotations
