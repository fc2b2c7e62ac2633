"""A process that hosts consumers of one library: ``python -m ...workers.host LIBRARY``.

Commands come on standard input, one JSON object a line: {"do": "start", ...} (`Order`),
{"do": "stop", "member"}, {"do": "busy", "member", "for_s"}. Events go to standard output (`report`). The
process ends with its standard input.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib import import_module

from groupstorm.held_signals import leave_stopping_to_parent
from groupstorm.storms.live.real_clients.workers.application import Application, Order, report

_MODULES = {
    "confluent-kafka": "with_confluent_kafka",
    "aiokafka": "with_aiokafka",
    "kafka-python": "with_kafka_python",
}


def main() -> None:
    leave_stopping_to_parent()
    library = import_module(f"{__package__}.{_MODULES[sys.argv[1]]}")
    applications: dict[str, Application] = {}
    report("ready", "")
    for line in sys.stdin:
        command = json.loads(line)
        member = command["member"]
        if command["do"] == "start":
            applications[member] = Application(Order.read(command), library.connect)
            threading.Thread(target=applications[member].run, daemon=True).start()
        elif command["do"] == "busy":
            applications[member].be_busy(command["for_s"])
        else:
            applications[member].stop()
    os._exit(0)  # the parent is gone or has no more work for us: consumers need not say goodbye


if __name__ == "__main__":
    main()
