"""The log of `groupstorm serve` on standard error: a line per change of a group and per closed connection.

Standard error may be a file on a disk that is full. A line that cannot be written is lost, and the broker
goes on: nobody's request depends on a log line.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import structlog

from groupstorm.trace.events.coordinator import Event
from groupstorm.trace.log import configure, log_event

__all__ = ["configure", "log_closed", "log_events", "log_problem"]


def log_events(_time_us: int, events: Sequence[Event]) -> None:
    """One line per event; the clock of the log is the real one."""
    with suppress(OSError):
        for event in events:
            log_event(event)


def log_closed(peer: str, why: str) -> None:
    """A connection that the broker has closed."""
    with suppress(OSError):
        structlog.get_logger().info("connection closed", peer=peer, why=why)


def log_problem(sentence: str) -> None:
    """What the broker has given up while it serves on."""
    with suppress(OSError):
        structlog.get_logger().error(sentence)
