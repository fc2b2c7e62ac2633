"""A folder with the commands of Kafka's distribution that suites call, for their KAFKA_PATH."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.conformance.programs.building import kafka_java

_COMMANDS = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}


def write_kafka_tools(folder: Path) -> Path:
    """Write the commands into ``folder/bin``, on Kafka's jars of the cache. Returns the value of KAFKA_PATH.

    Raises ProgramUnavailable.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, main in _COMMANDS.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(kafka_java().command(main))} "$@"\n', "utf-8")
        script.chmod(0o755)
    return folder
