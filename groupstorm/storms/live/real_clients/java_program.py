"""The Java worker: compiled once for each content of its source, into the user's cache."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import kafka_classpath, kafka_jars, quick_start
from groupstorm.clients.brokers.jvm import MINIMUM_JAVA
from groupstorm.javaruntime import cache_folder, runtimes
from groupstorm.problems import InputError

_SOURCE = Path(__file__).parent / "workers" / "java" / "Host.java"
_OPTIONS = ("-Xmx128m", "-Dlog4j2.level=ERROR")
_COMPILE_TIMEOUT_S = 120


def java_command() -> Sequence[str]:
    """The command of a process that hosts Kafka's Java consumers. Raises InputError without JDK or jars."""
    runtime = next(runtimes(MINIMUM_JAVA, []), None)
    if runtime is None or not runtime.java.with_name("javac").exists():
        raise InputError(
            f"--with java: needs a JDK of Java {MINIMUM_JAVA} or newer "
            "(Debian: apt install openjdk-17-jdk-headless)"
        )
    try:
        jars = kafka_jars()
    except BrokerUnavailable as missing:
        raise InputError(f"--with java: {missing}") from missing
    classes = _compiled(runtime.java.with_name("javac"), kafka_classpath(jars))
    options = [*_OPTIONS, *quick_start(runtime.java, jars)]
    return [str(runtime.java), *options, "-cp", kafka_classpath(jars, classes), "Host"]


def _compiled(compiler: Path, classpath: str) -> Path:
    def compile_into(folder: Path) -> None:
        answer = subprocess.run(
            [str(compiler), "-cp", classpath, "-d", str(folder), str(_SOURCE)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
        if answer.returncode != 0:
            said = (answer.stderr or answer.stdout).strip().splitlines() or ["javac wrote nothing"]
            raise InputError(f"--with java: the worker cannot be compiled: {said[0]}")

    return built_once("java-worker", _SOURCE.read_bytes() + classpath.encode(), compile_into)


def built_once(name: str, content: bytes, build: Callable[[Path], None]) -> Path:
    """The folder that ``build`` has filled for this ``content``: the sources, and what else decides.

    A folder appears under its name only when it is complete: several processes may build at once. An error
    that ``build`` raises leaves nothing behind.
    """
    place = cache_folder() / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="building-") as folder:
        building = Path(folder, "built")
        building.mkdir()
        build(building)
        try:
            building.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster: its folder has the same content
                raise
    return place
