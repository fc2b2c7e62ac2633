"""Topics in memory: record batches are kept as they came and never decoded, as a broker does."""

from __future__ import annotations
