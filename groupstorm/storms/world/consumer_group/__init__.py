"""Processes whose consumers are members of a consumer group (KIP-848, `group.protocol=consumer`)."""

from __future__ import annotations
