"""The real clients, each a process of its own that consumes until SIGTERM, with its library's defaults."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import KAFKA_VERSION, kafka_classpath, kafka_jars, quick_start
from groupstorm.clients.brokers.jvm import MINIMUM_JAVA
from groupstorm.javaruntime import cache_folder, runtimes
from tests.processes import BUILD_DEADLINE_S, run_process

PROGRAMS = Path(__file__).parent / "programs"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_JAVA_ASSIGNORS = {
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class ClientMissing(Exception):
    """This client cannot run here; the message is one line that says what it needs."""


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
            raise ClientMissing(f"pip install {package} (extra `kafka`)")
        program = [sys.executable, str(PROGRAMS / "consume.py"), profile]
        version = f"{package} {importlib.metadata.version(package)}"
        return Client(version, lambda target: [*program, *target[:4], *_given(target)])

    return find


def _given(target: ConsumerTarget) -> list[str]:
    if target.protocol:
        return [target.assignor, target.protocol]
    return [target.assignor] if target.assignor else []


def _java() -> Client:
    runtime = next(runtimes(MINIMUM_JAVA, []), None)
    if runtime is None:
        raise ClientMissing(
            f"needs Java {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)"
        )
    try:
        jars = kafka_jars()
    except BrokerUnavailable as missing:
        raise ClientMissing(str(missing)) from missing
    options = ["-Xmx128m", *quick_start(runtime.java, jars)]
    java = [str(runtime.java), *options, "-cp", kafka_classpath(jars)]

    def command(target: ConsumerTarget) -> list[str]:
        options = {"client.id": target.client_id}
        if target.assignor:
            options["partition.assignment.strategy"] = _JAVA_ASSIGNORS[target.assignor]
        if target.protocol:
            options["group.protocol"] = target.protocol
        where = ["--bootstrap-server", target.bootstrap, "--group", target.group, "--topic", target.topic]
        settings = [part for option in options.items() for part in ("--command-property", "=".join(option))]
        return [*java, CONSOLE_CONSUMER, *where, *settings]

    return Client(f"kafka-clients {KAFKA_VERSION}", command)


def _java_consumer() -> Client:
    """Kafka's Java consumer in a program of its own, which can work; compiled once, into the cache."""
    version = _java().version
    runtime = next(runtimes(MINIMUM_JAVA, []))
    compiler = runtime.java.with_name("javac")
    if not compiler.exists():
        raise ClientMissing(f"{runtime.java.parent.parent} has no compiler: install a JDK")
    source = PROGRAMS / "Consume.java"
    place = cache_folder() / f"consume-java-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    jars = kafka_jars()
    build = [str(compiler), "-cp", kafka_classpath(jars), "-d", str(place), str(source)]
    if not (place / "Consume.class").exists():
        run_process(build, check=True, deadline_s=BUILD_DEADLINE_S)
    options = ["-Xmx64m", *quick_start(runtime.java, jars)]
    java = [str(runtime.java), *options, "-cp", kafka_classpath(jars, place)]
    return Client(version, lambda target: [*java, "Consume", *target[:4]])


def _franz_go() -> Client:
    """Build the program once, into the cache."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise ClientMissing("needs Go (https://go.dev/doc/install)")
    source = PROGRAMS / "franz_go"
    program = cache_folder() / "franz-go-consumer"
    newest_s = max(file.stat().st_mtime for file in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest_s:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        build = [go, "build", "-o", str(fresh), "."]
        answer = run_process(
            build, cwd=source, capture_output=True, text=True, check=False, deadline_s=BUILD_DEADLINE_S
        )
        if answer.returncode != 0:
            raise ClientMissing(f"franz-go cannot be built: {answer.stderr.strip().splitlines()[-1]}")
        fresh.replace(program)
    version = (source / "go.mod").read_text("utf-8").split("franz-go v")[1].split()[0]
    return Client(f"franz-go {version}", lambda target: [str(program), *target[:4]])


#: Profile -> function that finds its client. It raises ClientMissing.
CLIENTS: Mapping[str, Callable[[], Client]] = {
    "java": _java,
    "librdkafka": _python("librdkafka", "confluent-kafka", "confluent_kafka"),
    "kafka-python": _python("kafka-python", "kafka-python", "kafka"),
    "aiokafka": _python("aiokafka", "aiokafka", "aiokafka"),
    "franz-go": _franz_go,
}

#: As CLIENTS, but all work on records for as long as WORK_MS in the environment says.
CONSUMERS: Mapping[str, Callable[[], Client]] = {**CLIENTS, "java": _java_consumer}
