"""A folder with the commands and jars of Kafka's distribution that suites use, for their KAFKA_PATH."""

from __future__ import annotations

import shlex
from pathlib import Path

from groupstorm.clients.brokers.jars import kafka_jars
from tests.conformance.programs.building import kafka_java

_COMMANDS = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}


def write_kafka_tools(folder: Path) -> Path:
    """Write the commands into ``folder/bin``, and link ``folder/libs`` to Kafka's jars in the cache.

    Returns the value of KAFKA_PATH.

    Raises ProgramUnavailable.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    kafka = kafka_java()
    lines = {name: f'exec {shlex.join(kafka.command(main))} "$@"' for name, main in _COMMANDS.items()}
    # the suites' own programs in Java
    lines["kafka-run-class.sh"] = (
        f'exec {shlex.quote(str(kafka.java))} -cp "$CLASSPATH:{kafka.classpath}" "$@"'
    )
    for name, line in lines.items():
        script = programs / name
        script.write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        script.chmod(0o755)
    libraries = folder / "libs"
    libraries.unlink(missing_ok=True)
    libraries.symlink_to(kafka_jars(), target_is_directory=True)
    return folder
