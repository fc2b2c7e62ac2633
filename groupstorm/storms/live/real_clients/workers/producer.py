"""Writes the scenario's records, with confluent-kafka: ``python -m ...workers.producer BOOTSTRAP``.

Commands come on standard input, one JSON object a line: {"do": "write", "began_ns", "topic", "partition",
"rates": [[from_us, records per 1,000 s], ...], "written"}. The partition gets these rates; ``written``
records count as written already. Every half second the ends of the logs that the broker has acknowledged are
reported.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from groupstorm.held_signals import leave_stopping_to_parent
from groupstorm.storms.live.real_clients.workers.application import report
from groupstorm.storms.records.logs import LogCurve

_TICK_S = 0.05
_REPORT_S = 0.5
_METADATA_TIMEOUT_S = 5.0
_RECORD = b"x" * 20


class _Log:
    """One partition; ``sent`` counts the records that it has got by its rates."""

    def __init__(self, command: Mapping[str, Any]) -> None:
        self.topic: str = command["topic"]
        self.partition: int = command["partition"]
        self.sent: int = command["written"]
        self.curve = LogCurve(tuple((from_us, rate) for from_us, rate in command["rates"]))
        self.began_ns: int = command["began_ns"]


class _Writer:
    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": 1})
        self._ends: dict[str, int] = {}
        self._logs: list[_Log] = []

    def obey(self) -> None:
        """Take commands until standard input ends, and the process with it."""
        for line in sys.stdin:
            self._logs.append(_Log(json.loads(line)))
        os._exit(0)

    def run(self) -> None:
        reported_s = time.monotonic()
        while True:
            now_ns = time.monotonic_ns()
            for log in tuple(self._logs):
                self._advance(log, now_ns)
            self._producer.poll(0)
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s = time.monotonic()
                report("written", "", ends=self._ends)
            time.sleep(_TICK_S)

    def _advance(self, log: _Log, now_ns: int) -> None:
        end = log.curve.end((now_ns - log.began_ns) // 1000)
        while log.sent < end:
            try:
                self._producer.produce(log.topic, _RECORD, partition=log.partition, on_delivery=self._done)
            except BufferError:  # the broker is slower than the rates: the rest is due at the next tick
                return
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                self._producer.list_topics(log.topic, _METADATA_TIMEOUT_S)  # a partition that was just added
                return
            log.sent += 1

    def _done(self, error: Any, message: Any) -> None:
        if error is None:
            self._ends[f"{message.topic()}-{message.partition()}"] = message.offset() + 1


def main() -> None:
    leave_stopping_to_parent()
    writer = _Writer(sys.argv[1])
    report("ready", "")
    threading.Thread(target=writer.obey, daemon=True).start()
    writer.run()


if __name__ == "__main__":
    main()
