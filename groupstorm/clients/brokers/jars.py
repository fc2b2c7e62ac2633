"""Apache Kafka as we run it: one node's options, and the jars, fetched once with Maven into the user's cache.

A folder gets its name when it is complete, so several processes may fetch at once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
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


#: The second compiler does not earn back in minutes what it costs. The JVM says nothing of archives, which it
#: would do on standard output.
_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:cds*=off")


def quick_start(java: Path, jars: Path) -> Sequence[str]:
    """Options of Java for a class path that begins with all of ``jars``, as `kafka_classpath` has it.

    With an archive (AppCDS, as in Kafka's own container image) a broker starts in a third of the CPU time.
    The first broker of each release and Java writes it as it ends; a JVM that cannot use it does without.
    """
    archive = _archive(java, jars)
    return (*_SHORT_LIVED, f"-XX:SharedArchiveFile={archive}") if archive.is_file() else _SHORT_LIVED


def kafka_classpath(jars: Path, *behind: Path) -> str:
    """The class path of a program on Kafka's ``jars``; an archive fits one that begins as the broker's."""
    return os.pathsep.join([f"{jars}{os.sep}*", *map(str, behind)])


def archiving(java: Path, jars: Path, written: Path) -> Sequence[str]:
    """Options for a broker that writes its archive into ``written`` as it ends; none if there is one.

    A Java without an archive of its own classes would not start with them.
    """
    of_java = java.resolve().parents[1] / "lib" / "server" / "classes.jsa"
    is_due = of_java.is_file() and not _archive(java, jars).is_file()
    return (f"-XX:ArchiveClassesAtExit={written}",) if is_due else ()


def keep_archive(java: Path, jars: Path, written: Path) -> None:
    """Move what a broker has written to its place, whole or not at all: a JVM breaks on half an archive."""
    archive = _archive(java, jars)
    with suppress(OSError), tempfile.TemporaryDirectory(dir=archive.parent) as folder:  # without it all works
        beside = Path(folder, archive.name)
        with written.open("rb") as source, beside.open("wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        beside.replace(archive)


def _archive(java: Path, jars: Path) -> Path:
    """One for each build of Java: an archive fits only the one that wrote it."""
    build = java.resolve()
    known_by = f"{build}:{build.stat().st_mtime_ns}".encode()
    return jars.with_name(f"{jars.name}-{zlib.crc32(known_by):08x}.jsa")
