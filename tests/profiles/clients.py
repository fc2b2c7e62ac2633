"""The real clients, each a process of its own that consumes until SIGTERM, with its library's defaults."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import KAFKA_VERSION, kafka_jars
from groupstorm.clients.brokers.jvm import MINIMUM_JAVA
from groupstorm.javaruntime import cache_folder, runtimes

PROGRAMS = Path(__file__).parent / "programs"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


class Missing(Exception):
    """This client cannot be run here; the message is one line that says how to have it."""


class Client(NamedTuple):
    """``command``: of (bootstrap, group, topic, client id)."""

    version: str
    command: Callable[[str, str, str, str], list[str]]


def _python(profile: str, package: str, module: str) -> Callable[[], Client]:
    def find() -> Client:
        if importlib.util.find_spec(module) is None:
            raise Missing(f"pip install {package} (extra `kafka`)")
        program = [sys.executable, str(PROGRAMS / "consume.py"), profile]
        return Client(f"{package} {importlib.metadata.version(package)}", lambda *where: [*program, *where])

    return find


def _java() -> Client:
    runtime = next(runtimes(MINIMUM_JAVA, []), None)
    if runtime is None:
        raise Missing(f"needs Java {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jre-headless)")
    try:
        jars = kafka_jars()
    except BrokerUnavailable as missing:
        raise Missing(str(missing)) from missing

    def command(bootstrap: str, group: str, topic: str, client_id: str) -> list[str]:
        java = [str(runtime.java), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        where = ["--bootstrap-server", bootstrap, "--group", group, "--topic", topic]
        return [
            *java,
            "-cp",
            f"{jars}/*",
            CONSOLE_CONSUMER,
            *where,
            "--command-property",
            f"client.id={client_id}",
        ]

    return Client(f"kafka-clients {KAFKA_VERSION}", command)


def _franz_go() -> Client:
    """Built once into the cache."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise Missing("needs Go (Debian: apt install golang-go)")
    source = PROGRAMS / "franz_go"
    program = cache_folder() / "franz-go-consumer"
    newest = max(file.stat().st_mtime for file in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        built = subprocess.run(
            [go, "build", "-o", str(fresh), "."], cwd=source, capture_output=True, text=True, check=False
        )
        if built.returncode != 0:
            raise Missing(f"franz-go cannot be built: {built.stderr.strip().splitlines()[-1]}")
        fresh.replace(program)
    requires = (source / "go.mod").read_text().split("franz-go v")[1].split()[0]
    return Client(f"franz-go {requires}", lambda *where: [str(program), *where])


#: Profile -> its client. Calling it raises Missing.
CLIENTS: Mapping[str, Callable[[], Client]] = {
    "java": _java,
    "librdkafka": _python("librdkafka", "confluent-kafka", "confluent_kafka"),
    "kafka-python": _python("kafka-python", "kafka-python", "kafka"),
    "aiokafka": _python("aiokafka", "aiokafka", "aiokafka"),
    "franz-go": _franz_go,
}
