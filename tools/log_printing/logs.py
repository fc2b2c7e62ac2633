"""A storm's trace as the logs that Kafka 4.3's broker or Java clients would have written of it.

What the trace has and such logs do not (positions, commits, requests), is left out; the texts are the
templates that `groupstorm import` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tools.log_printing import Row
from tools.log_printing.broker import PrintedBroker
from tools.log_printing.java_clients import PrintedJavaClients

#: The wall clock at time 0: a storm has none of its own.
BEGAN: Final = datetime(2026, 1, 1)


class LogKind(StrEnum):
    """Which program's log a trace is printed as."""

    BROKER = "broker-log"
    JAVA = "java-log"


def as_log(rows: Iterable[Row], kind: LogKind) -> Iterator[str]:
    """The lines of the log, in the order of the trace."""
    printers: Mapping[LogKind, Callable[[], PrintedBroker | PrintedJavaClients]] = {
        LogKind.BROKER: PrintedBroker,
        LogKind.JAVA: PrintedJavaClients,
    }
    for line in printers[kind]().lines(rows):
        stamp = BEGAN + timedelta(microseconds=line.time_us)
        text = f"{line.level} {line.message} ({line.logger})"
        yield f"[{stamp:%Y-%m-%d %H:%M:%S},{stamp.microsecond // 1000:03d}] {text}"
