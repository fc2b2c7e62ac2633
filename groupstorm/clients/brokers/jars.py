"""Apache Kafka as we run it: one node's options, and the jars, fetched once with Maven into the user's cache.

A folder gets its name when it is complete, so several processes may fetch at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.javaruntime import cache_folder

#: The release that the emulator follows.
KAFKA_VERSION = "4.3.1"

#: Internal topics on the only node, with few partitions for a quick start.
INTERNAL_TOPICS: Mapping[str, str] = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}

#: The most memory that the node may use.
HEAP = "-Xmx512m"

#: The time limit of the node's start.
START_TIMEOUT_S = 60.0

POM = Path(__file__).with_name("kafka") / "pom.xml"

#: The logging library of Kafka before release 4: log4j 1, in the fork that is maintained.
_LOG4J_1 = ("-Dlogging.group=org.slf4j", "-Dlogging.artifact=slf4j-reload4j", "-Dlogging.version=1.7.36")

#: Maven's messages if it cannot fetch an artifact.
_NO_NETWORK = ("Could not transfer artifact", "Could not resolve dependencies", "could not be resolved")


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """A folder with the broker's and the command-line tools' jars. Raises BrokerUnavailable."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}", version):
        raise BrokerUnavailable(f"Kafka {version!r}: expected a version such as {KAFKA_VERSION}")
    folder = cache_folder() / f"kafka-{version}"
    if not folder.is_dir():
        _fetch(version, folder)
    return folder


def has_log4j_1(version: str) -> bool:
    """Whether this release of Kafka is configured with a file of log4j 1."""
    return int(version.partition(".")[0]) < 4


def _fetch(version: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable(
            f"Kafka's jars are not in {folder} and Maven is missing (Debian: apt install maven)"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as fetching:
            jars = Path(fetching, "jars")
            command = [maven, "-B", "-q", "-f", str(POM), f"-Dkafka.version={version}"]
            command += _LOG4J_1 if has_log4j_1(version) else ()
            command += ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            answer = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if answer.returncode != 0:
                raise BrokerUnavailable(_explain(version, answer.stdout + answer.stderr))
            _put_in_place(jars, folder)
    except OSError as problem:
        raise BrokerUnavailable(f"{folder}: cannot be written: {problem.strerror}") from problem


def _explain(version: str, output: str) -> str:
    if any(words in output for words in _NO_NETWORK):
        return f"Maven cannot fetch Kafka {version}'s jars: no such release, or it reaches no repository"
    errors = [line for line in output.splitlines() if "ERROR" in line] or output.splitlines()
    return "Maven could not fetch Kafka's jars: " + (errors[0] if errors else "it printed nothing")


def _put_in_place(jars: Path, folder: Path) -> None:
    """Rename the folder. If another process was faster, its folder has the same content."""
    try:
        jars.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
