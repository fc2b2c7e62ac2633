"""Builds the Java side, once for every content of its sources.

What is built lands in `.oracle/` at the root of the checkout, which may be deleted at any time: `lib-<digest
of pom.xml>` holds Kafka's jars, `classes-<digest of pom.xml and the sources>` our own classes. A folder
appears under its name only when it is complete, so several processes may build at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from groupstorm.javaruntime import runtimes
from tests.needs import Missing
from tests.processes import run_build

SOURCES = Path(__file__).resolve().parent
CACHE = SOURCES.parents[1] / ".oracle"

#: The release whose classes are asked (`pom.xml`); the coordinator's may be of another one.
KAFKA = "4.3.1"

#: Kafka 4's brokers are compiled for Java 17.
MINIMUM_JAVA = 17

#: Maven's words for "the artifact could not be fetched".
_NO_NETWORK = ("Could not transfer artifact", "Could not resolve dependencies", "could not be resolved")


class OracleUnavailable(Missing):
    """Kafka's classes cannot be run here; the message is one line that says what to install or to do."""


class OracleBroke(Exception):
    """The Java side does not compile, or ended before its time; the message holds its last words."""


class Built(NamedTuple):
    """The command and class path of a JVM."""

    java: Path
    classpath: str
    main: str = "groupstorm.oracle.Main"


def build(cache: Path = CACHE) -> Built:
    """The oracle's classes, built if these sources were not built before."""
    return _built(cache, [])


def build_coordinator(kafka: str, cache: Path = CACHE) -> Built:
    """The coordinator of that release of Kafka."""
    if kafka == KAFKA:
        return build(cache)
    alone = _built(cache, ["-Pcoordinator-alone", f"-Dkafka.version={kafka}"], f"-{kafka}")
    return alone._replace(main="groupstorm.oracle.coordinator.Script")


def build_share_records(kafka: str, cache: Path = CACHE) -> Built:
    """A partition of share groups, of that release of Kafka."""
    alone = _built(cache, ["-Pshare-records", f"-Dkafka.version={kafka}"], f"-share-records-{kafka}")
    return alone._replace(main="kafka.server.share.PartitionOracle")


def build_streams_thread(kafka: str, cache: Path = CACHE) -> Built:
    """A thread's member of a streams group, of that release of Kafka."""
    alone = _built(cache, ["-Pstreams-thread", f"-Dkafka.version={kafka}"], f"-streams-thread-{kafka}")
    return alone._replace(main="org.apache.kafka.clients.consumer.internals.ScriptedThread")


def _built(cache: Path, options: Sequence[str], suffix: str = "") -> Built:
    java = find_java()
    classes = cache / f"classes-{_digest(_sources())}{suffix}"
    lib = cache / f"lib-{_digest([SOURCES / 'pom.xml'])}{suffix}"
    if not (classes.is_dir() and lib.is_dir()):
        _run_maven(java, classes, lib, options)
    return Built(java, os.pathsep.join([str(classes), str(lib / "*")]))


def find_java() -> Path:
    """The `java` of JAVA_HOME or PATH; `OracleUnavailable` where it is missing or too old."""
    found: list[str] = []
    for runtime in runtimes(MINIMUM_JAVA, found):
        return runtime.java
    have = ", ".join(found) or "no java was found"
    raise OracleUnavailable(
        f"{have}: install a JDK of version {MINIMUM_JAVA} or newer (Debian: apt install openjdk-17-jdk)"
    )


def _sources() -> list[Path]:
    return [SOURCES / "pom.xml", *sorted((SOURCES / "src").rglob("*.java"))]


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(SOURCES).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _run_maven(java: Path, classes: Path, lib: Path, options: Sequence[str]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise OracleUnavailable("Maven was not found: install it (Debian: apt install maven)")
    if not java.with_name("javac").exists():
        raise OracleUnavailable(f"{java.parent.parent} has no compiler: install a JDK, not only a runtime")
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent, prefix="building-") as folder:
        built, jars = Path(folder, "build"), Path(folder, "lib")
        command = [maven, "-B", "-q", "-f", str(SOURCES / "pom.xml"), f"-Doracle.build={built}"]
        command += [
            *options,
            f"-Doracle.lib={jars}",
            f"-Dmdep.skip={str(lib.is_dir()).lower()}",
            "process-classes",
        ]
        environment = {**os.environ, "JAVA_HOME": str(java.parent.parent)}
        answer = run_build(command, env=environment)
        if answer.returncode != 0:
            raise _problem(answer.stdout + answer.stderr)
        _put_in_place(built / "classes", classes)
        if jars.is_dir():
            _put_in_place(jars, lib)


def _problem(output: str) -> OracleUnavailable | OracleBroke:
    if any(words in output for words in _NO_NETWORK):
        return OracleUnavailable(
            "Maven cannot fetch Kafka's jars: it reaches no repository (later runs need none)"
        )
    errors = [line for line in output.splitlines() if line.startswith("[ERROR]")] or output.splitlines()
    said = "Maven could not build the oracle: " + (errors[0] if errors else "it said nothing")
    return OracleBroke(said) if ".java:[" in said else OracleUnavailable(said)


def _put_in_place(built: Path, place: Path) -> None:
    """Another process may have been faster: its folder has the same content."""
    try:
        built.rename(place)
    except OSError:
        if not place.is_dir():
            raise
