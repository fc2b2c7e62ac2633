"""The real clients, each a process of its own that consumes until SIGTERM, with its library's defaults."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers.jars import KAFKA_VERSION
from tests.conformance.programs.building import ProgramUnavailable, go_program, java_program, kafka_java

PROGRAMS = Path(__file__).parent / "programs"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_JAVA_ASSIGNORS = {"cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}


class ConsumerTarget(NamedTuple):
    """One consumer to start: its broker, group, topic and client id.

    ``assignor`` and ``protocol`` (group.protocol): "" is the library's default.
    """

    bootstrap: str
    group: str
    topic: str
    client_id: str
    assignor: str = ""
    protocol: str = ""


class Client(NamedTuple):
    """``command`` starts one consumer."""

    version: str
    command: Callable[[ConsumerTarget], list[str]]


def _python(profile: str, package: str, module: str) -> Callable[[], Client]:
    def find() -> Client:
        if importlib.util.find_spec(module) is None:
            raise ProgramUnavailable(f"pip install {package} (extra `kafka`)")
        program = [sys.executable, str(PROGRAMS / "consume.py"), profile]
        version = f"{package} {importlib.metadata.version(package)}"
        return Client(version, lambda target: [*program, *target[:4], *_given(target)])

    return find


def _given(target: ConsumerTarget) -> list[str]:
    if target.protocol:
        return [target.assignor, target.protocol]
    return [target.assignor] if target.assignor else []


def _java() -> Client:
    java = kafka_java()

    def command(target: ConsumerTarget) -> list[str]:
        options = {"client.id": target.client_id}
        if target.assignor:
            options["partition.assignment.strategy"] = _JAVA_ASSIGNORS[target.assignor]
        if target.protocol:
            options["group.protocol"] = target.protocol
        where = ["--bootstrap-server", target.bootstrap, "--group", target.group, "--topic", target.topic]
        settings = [part for option in options.items() for part in ("--command-property", "=".join(option))]
        return java.command(CONSOLE_CONSUMER, *where, *settings, heap="128m")

    return Client(f"kafka-clients {KAFKA_VERSION}", command)


def _java_consumer() -> Client:
    """Kafka's Java consumer in a program of its own, which can work."""
    java = java_program(PROGRAMS / "Consume.java", "consume-java")
    version = f"kafka-clients {KAFKA_VERSION}"
    return Client(version, lambda target: java.command("Consume", *target[:4], heap="64m"))


def _franz_go() -> Client:
    module = PROGRAMS / "franz_go"
    program = go_program(module, "franz-go-consumer")
    version = (module / "go.mod").read_text("utf-8").split("franz-go v")[1].split()[0]
    return Client(f"franz-go {version}", lambda target: [str(program), *target[:4]])


#: Profile -> function that finds its client. It raises ProgramUnavailable.
CLIENTS: Mapping[str, Callable[[], Client]] = {
    "java": _java,
    "librdkafka": _python("librdkafka", "confluent-kafka", "confluent_kafka"),
    "kafka-python": _python("kafka-python", "kafka-python", "kafka"),
    "aiokafka": _python("aiokafka", "aiokafka", "aiokafka"),
    "franz-go": _franz_go,
}

#: As CLIENTS, but all work on records for as long as WORK_MS in the environment says.
CONSUMERS: Mapping[str, Callable[[], Client]] = {**CLIENTS, "java": _java_consumer}
