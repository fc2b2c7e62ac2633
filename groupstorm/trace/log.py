"""The log for people: one line per event on standard error, bound with group, generation and member.

The trace is the record for machines; nothing reads these lines.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

import structlog

from groupstorm.trace.rows import COLUMN_NAMES, TracedEvent, TraceSink, event_name
from groupstorm.trace.schema import Source
from groupstorm.visible import visible, without_controls

#: The keys that belong to every line, so that one group or one member can be searched for.
BOUND = ("group", "generation", "member")
#: Steps of a round that would hide the other lines. They are in the trace, and logged only if they failed.
STEPS = frozenset({"join_parked", "join_answered", "sync_parked", "sync_answered", "offsets_committed"})
#: More names than this are counted.
_LISTED_MAX = 6


def configure(timestamps: bool = True) -> None:
    """Lines to standard error, in colour if that is a terminal; ``timestamps``: of the real clock."""
    stamp = [structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False)] if timestamps else []
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            *stamp,
            _made_visible,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False, pad_event_to=24),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


class _Quoted(NamedTuple):
    """A value that structlog quotes; by itself it quotes only texts with blanks, quotes or `=`."""

    value: str

    def __repr__(self) -> str:
        return without_controls(repr(self.value))


def _made_visible(_logger: object, _method: str, fields: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Names that clients have chosen write nothing but themselves on a terminal."""
    shown = {name: visible(value) for name, value in fields.items() if isinstance(value, str)}
    hidden = {
        name: _Quoted(fields[name]) for name in shown if name != "event" and shown[name] != fields[name]
    }
    return {**fields, "event": shown["event"], **hidden}


def log_event(event: TracedEvent, **more: object) -> None:
    """One line; fields that are null or empty are left out. ``more`` stands in front of them."""
    fields: dict[str, Any] = {
        name: value
        for name, value in zip(event._fields, event, strict=True)
        if name in COLUMN_NAMES and value not in (None, "", ())
    }
    kind = event_name(type(event))
    if kind in STEPS and "error" not in fields:
        return
    bound = {name: fields.pop(name) for name in BOUND if name in fields}
    shown = {name: _short(value) for name, value in fields.items()}
    structlog.get_logger().bind(**bound).info(kind.replace("_", " "), **more, **shown)


def _short(value: object) -> object:
    if isinstance(value, tuple) and len(value) > _LISTED_MAX:
        return f"{len(value)} values"
    return value


class LogSink(TraceSink):
    """A trace sink that logs: each line with the virtual time in seconds."""

    def add(self, time_us: int, source: Source, event: TracedEvent) -> None:
        log_event(event, at=f"{time_us / 1e6:.6f}", source=str(source))

    def close(self) -> None:
        """Every line was written when it came."""
