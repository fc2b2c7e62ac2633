"""Members of all libraries, alike: those of `tests.client_libraries`, ours, and programs of other languages.

A program says on standard output, a line each: ``assigned``, ``revoked`` or ``lost`` with partition numbers,
``record`` with partition, offset and value, and ``refused`` for a commit that came too late.
"""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import pytest

from tests.client_libraries.conftest import MODULES
from tests.client_libraries.conftest import checked as installed
from tests.client_libraries.members import (
    CLASSIC,
    CONSUMER,
    HEARTBEAT_INTERVAL_MS,
    MEMBERS,
    SESSION_TIMEOUT_MS,
    Member,
    Threaded,
)
from tests.client_libraries.our_member import OurMember
from tests.conformance.programs.building import franz_go_member, java_member
from tests.needs import needed

#: A program that is restarted may take longer than `SESSION_TIMEOUT_MS` to start on a busy machine.
STATIC_SESSION_TIMEOUT_MS = 30_000

_JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class _Partition(NamedTuple):
    topic: str
    partition: int


class Program(Threaded):
    """A program that says what it does, a line each; it closes when its standard input does."""

    def _command(self) -> list[str]:
        raise AssertionError("each program is started in its own way")

    def _take(self, what: str, *about: str) -> bool:
        """False for a line that is none of ours: what it logs."""
        raise AssertionError("each program says something else")

    def stop(self) -> None:
        try:
            super().stop()
        except AssertionError as problem:
            problem.add_note("the program's last lines:\n" + "".join(getattr(self, "_said", ())))
            raise
        finally:
            process: subprocess.Popen[str] | None = getattr(self, "_process", None)
            if process is not None:
                process.kill()

    def _run(self) -> None:
        self._said = said = deque[str](maxlen=10)
        with subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            self._process = process
            assert process.stdout is not None
            for line in process.stdout:
                if not self._take(*line.rstrip("\n").split("\t")):
                    said.append(line)
            assert process.wait() == 0, "".join(said)

    def _wake(self) -> None:
        process: subprocess.Popen[str] | None = getattr(self, "_process", None)
        if process is not None and process.stdin is not None:
            process.stdin.close()


class ProgramMember(Program, Member):
    """A member that is a process."""

    def _options(self) -> dict[str, str]:
        static = {} if self._instance is None else {"group.instance.id": self._instance}
        classic = {
            "session.timeout.ms": str(STATIC_SESSION_TIMEOUT_MS if static else SESSION_TIMEOUT_MS),
            "heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
            "partition.assignment.strategy": self._assignor,
        }
        return {
            **static,
            **(classic if self._protocol == CLASSIC else {"group.protocol": CONSUMER}),
            "bootstrap.servers": self._address,
            "group.id": self._group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }

    def _take(self, what: str, *about: str) -> bool:
        if what == "record":
            self.notes.read(int(about[0]), [(int(about[1]), about[2])])
        elif what == "assigned":
            self.notes.assigned(self._partitions(about[0]), self.cooperative)
        elif what in ("revoked", "lost"):
            self.notes.revoked(self._partitions(about[0]))
        return what in ("record", "assigned", "revoked", "lost", "refused")

    def _partitions(self, numbers: str) -> list[_Partition]:
        return [_Partition(self._topics[0], int(number)) for number in numbers.split()]


class JavaMember(ProgramMember):
    """Kafka's own consumer."""

    def _command(self) -> list[str]:
        own = {"metadata.max.age.ms": "1000"}
        if self._protocol == CLASSIC:
            names = [_JAVA_ASSIGNORS[name] for name in self._assignor.split(",")]
            own["partition.assignment.strategy"] = ",".join(names)
        arguments = [f"{name}={value}" for name, value in {**self._options(), **own}.items()]
        return java_member().command("Member", *self._topics, *arguments)


class FranzGoMember(ProgramMember):
    """franz-go's consumer group."""

    def _command(self) -> list[str]:
        options = (f"{name}={value}" for name, value in self._options().items())
        return [str(franz_go_member()), *self._topics, *options]


def each(names: Iterable[str]) -> list[Any]:
    """The libraries as parameters. Programs of other languages are built first, and a JVM takes its time."""
    slow = (JAVA, FRANZ_GO)
    return [pytest.param(name, marks=pytest.mark.slow if name in slow else (), id=name) for name in names]


class Library(NamedTuple):
    """A client library: its member, and whether it has cooperative-sticky."""

    name: str
    member: type[Member]
    cooperative: bool
    needs: Callable[[], object]

    def check(self) -> None:
        """Skip the test where the library cannot be had."""
        with needed():
            self.needs()


OURS = "CooperativeConsumer"
JAVA, FRANZ_GO, CONFLUENT = "Java consumer", "franz-go", "confluent-kafka"

LIBRARIES = {
    **{name: Library(name, MEMBERS[name], name != "aiokafka", partial(installed, name)) for name in MODULES},
    # imported here once: by members on several threads at a time, its modules fail that import each other
    OURS: Library(OURS, OurMember, True, partial(pytest.importorskip, "aiokafka.consumer")),
    JAVA: Library(JAVA, JavaMember, True, java_member),
    FRANZ_GO: Library(FRANZ_GO, FranzGoMember, True, franz_go_member),
}


def each_library(names: Iterable[str]) -> Any:
    """A fixture: each of the libraries in turn."""

    @pytest.fixture(params=each(names))
    def library(request: pytest.FixtureRequest) -> Library:
        chosen = LIBRARIES[request.param]
        chosen.check()
        return chosen

    return library
