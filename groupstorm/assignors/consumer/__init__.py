"""Client-side assignors: Kafka's as of 4.3.1, those of the design documents, and optimal-sticky.

* `range` and `roundrobin`.
* `sticky` holds Kafka's two sticky assignors; they share the steps in `claims` (who owned what),
  `constrained` (equal subscriptions) and `general` (all others), which run on dense integers
  (`index`) and know racks (`racks`).
* `fourphase` (KAFKA-9987), `twophase` (KAFKA-12464) and `optimal` are plans for `planned`, which does
  what is around a plan; `owners` names the owner of each partition.
* `optimal` uses `network`, `water_filling`, `bands` (the best balance) and `minimum_moves`.
* `indexed` is the optional protocol of assignors that assign on partition numbers.
* `streamjoin` (KIP-315) assigns partition numbers across topics.
"""

from __future__ import annotations
