"""Builds the members that are not Python, once for every content of their sources, into the user's cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from groupstorm.clients.brokers.contract import BrokerUnavailable
from groupstorm.clients.brokers.jars import KAFKA_VERSION, kafka_classpath, kafka_jars, quick_start
from groupstorm.javaruntime import runtimes
from groupstorm.storms.live.real_clients.libraries import built_once
from tests.needs import Missing
from tests.processes import run_build, run_process

SOURCES = Path(__file__).parent
MINIMUM_JAVA = 17
#: Where Debian's and Go's own packages put it, if it is not on the path.
_GO_PLACES = ("go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go")


class ProgramUnavailable(Missing):
    """It cannot be built here; the message is one line that says what to install."""


class Java(NamedTuple):
    """The command and class path of a JVM with Kafka's jars."""

    java: Path
    jars: Path
    classes: tuple[Path, ...] = ()

    @property
    def classpath(self) -> str:
        return kafka_classpath(self.jars, *self.classes)

    def command(self, main: str, *arguments: str, heap: str = "256m") -> list[str]:
        options = [f"-Xmx{heap}", *quick_start(self.java, self.jars), "-Dlog4j2.level=ERROR"]
        return [str(self.java), *options, "-cp", self.classpath, main, *arguments]


@cache
def kafka_java(version: str = KAFKA_VERSION) -> Java:
    """Kafka's own command-line tools. Raises ProgramUnavailable."""
    java = _java()
    try:
        return Java(java, kafka_jars(version))
    except BrokerUnavailable as unavailable:
        raise ProgramUnavailable(str(unavailable)) from unavailable


def _java() -> Path:
    for runtime in runtimes(MINIMUM_JAVA, []):
        return runtime.java
    raise ProgramUnavailable(f"Java {MINIMUM_JAVA} or newer is needed (Debian: apt install openjdk-17-jdk)")


def java_member() -> Java:
    """Kafka's Java consumer (`java/Member.java`). Raises ProgramUnavailable."""
    return java_program(SOURCES / "java" / "Member.java", "conformance-java")


def share_member() -> Java:
    """Kafka's share consumer (`java/ShareMember.java`). Raises ProgramUnavailable."""
    source = SOURCES / "java" / "ShareMember.java"
    return java_program(source, "conformance-share", "4.4.0")


def kafka_commands(version: str = KAFKA_VERSION) -> Java:
    """Kafka's command-line tools in one JVM (`java/Commands.java`). Raises ProgramUnavailable."""
    return java_program(SOURCES / "java" / "Commands.java", "conformance-commands", version)


@cache
def java_program(source: Path, name: str, version: str = KAFKA_VERSION) -> Java:
    """A program of one file on Kafka's jars, built under this name. Raises ProgramUnavailable."""
    return _java_program(kafka_java(version), source, name)


def answers(source: Path, lines: Iterable[str]) -> list[str]:
    """Return what a program of one file on Kafka's jars says to these lines. Raises ProgramUnavailable."""
    command = java_program(source, f"answers-{source.stem.lower()}").command(source.stem)
    asked = "".join(f"{line}\n" for line in lines)
    done = run_process(command, input=asked, capture_output=True, text=True, deadline_s=300, check=True)
    return done.stdout.splitlines()


@cache
def word_count() -> Java:
    """A word count of Kafka Streams (`java/streams/WordCount.java`). Raises ProgramUnavailable."""
    streams = SOURCES / "java" / "streams"
    pom = streams / "pom.xml"

    def fetch_into(folder: Path) -> list[str]:
        maven = shutil.which("mvn")
        if maven is None:
            raise ProgramUnavailable("Maven fetches Kafka Streams: install it (Debian: apt install maven)")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        return [maven, "-B", "-q", "-f", str(pom), *goal]

    jars = _built("kafka-streams", [pom], fetch_into)
    return _java_program(Java(_java(), jars), streams / "WordCount.java", "conformance-word-count")


def _java_program(kafka: Java, source: Path, name: str) -> Java:
    compiler = kafka.java.with_name("javac")
    if not compiler.exists():
        raise ProgramUnavailable(
            f"{kafka.java.parent.parent} has no compiler: install a JDK, not only a runtime"
        )

    def compile_into(folder: Path) -> list[str]:
        return [str(compiler), "-cp", kafka.classpath, "-d", str(folder), str(source)]

    classes = _built(name, [source], compile_into)
    return Java(kafka.java, kafka.jars, (classes,))


@cache
def go() -> str:
    """Go's command. Raises ProgramUnavailable."""
    found = next((path for place in _GO_PLACES if (path := shutil.which(place))), None)
    if found is None:
        raise ProgramUnavailable(
            "Go builds what is written in Go: install it (Debian: apt install golang-go)"
        )
    return found


@cache
def franz_go_member() -> Path:
    """franz-go's consumer (`franz_go/main.go`). Raises ProgramUnavailable."""
    return go_program(SOURCES / "franz_go", "conformance-franz-go")


@cache
def franz_go_secured() -> Path:
    """franz-go as a user (`franz_go/secured/main.go`). Raises ProgramUnavailable."""
    return go_program(SOURCES / "franz_go", "conformance-franz-go-secured", "secured")


def go_program(module: Path, name: str, package: str = ".") -> Path:
    """A program of one file of a module, built under this name. Raises ProgramUnavailable."""
    compiler = go()
    files = [module / file for file in (f"{package}/main.go", "go.mod", "go.sum")]

    def build_into(folder: Path) -> list[str]:
        return [compiler, "-C", str(module), "build", "-o", str(folder / "member"), f"./{package}"]

    return _built(name, files, build_into) / "member"


def _built(name: str, sources: Iterable[Path], command: Callable[[Path], list[str]]) -> Path:
    def build_into(folder: Path) -> None:
        answer = run_build(command(folder))
        if answer.returncode != 0:
            said = (answer.stderr or answer.stdout).strip().splitlines() or ["it said nothing"]
            raise ProgramUnavailable(f"{name} could not be built: {said[-1]}")

    content = b"\0".join(source.read_bytes() for source in sources)
    return built_once(name, content, build_into)
