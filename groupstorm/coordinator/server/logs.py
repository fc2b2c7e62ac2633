"""What `groupstorm serve` logs for people: every change of a group, every connection that it closes."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from groupstorm.coordinator.events import Event
from groupstorm.trace.log import configure, log_event

__all__ = ["configure", "log_closed", "log_events"]


def log_events(happened: Sequence[Event]) -> None:
    """One line per event."""
    for event in happened:
        log_event(event)


def log_closed(peer: str, why: str) -> None:
    """A connection that was closed by us."""
    structlog.get_logger().info("connection closed", peer=peer, why=why)
