"""Topics in memory. Record batches are kept as they came and never decoded, as in Kafka."""

from __future__ import annotations
