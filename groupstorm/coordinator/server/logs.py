"""The log for people: one line per thing that the coordinator did, on standard error.

The trace is the record for machines; nothing reads these lines.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import structlog

from groupstorm.coordinator import events
from groupstorm.coordinator.events import Event
from groupstorm.trace.rows import event_name

#: What belongs to every line, so that one group or one member can be searched for.
_BOUND = ("group", "generation", "member")
#: Steps of a round that would drown the others; they are in the trace. Logged only where they failed.
_STEPS = (
    events.JoinParked,
    events.JoinAnswered,
    events.SyncParked,
    events.SyncAnswered,
    events.OffsetsCommitted,
)


def configure() -> None:
    """Lines with time and level to standard error, in colour where that is a terminal."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False, pad_event_to=24),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def log_events(happened: Sequence[Event]) -> None:
    """One line per event; fields that are null or empty are left out."""
    for event in happened:
        fields: dict[str, Any] = {
            name: value for name, value in event._asdict().items() if value not in (None, "", ())
        }
        if isinstance(event, _STEPS) and "error" not in fields:
            continue
        bound = {name: fields.pop(name) for name in _BOUND if name in fields}
        kind: type = type(event)
        structlog.get_logger().bind(**bound).info(event_name(kind).replace("_", " "), **fields)


def log_closed(peer: str, why: str) -> None:
    """A connection that was closed by us."""
    structlog.get_logger().info("connection closed", peer=peer, why=why)
