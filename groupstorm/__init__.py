"""Kafka's group coordinator, emulated faithfully in protocol and in time."""

from __future__ import annotations

__version__ = "0.1.0"
