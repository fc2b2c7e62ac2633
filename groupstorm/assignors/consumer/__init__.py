"""Kafka's client-side assignors: range, roundrobin, sticky and cooperative-sticky, as of Kafka 4.3.1.

`sticky` holds both sticky assignors; they share the steps in `claims` (who owned what),
`constrained` (equal subscriptions) and `general` (all others), which run on dense integers
(`index`) and know racks (`racks`).
"""

from __future__ import annotations
