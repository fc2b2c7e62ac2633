"""Kafka's Java leader beside ours: the same rounds, in a warm JVM, timed there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import pack
from types import TracebackType
from typing import Any, NamedTuple

from groupstorm.assignors.leader import JoinedMember
from tests.oracle.build import CACHE, SOURCES, Built, OracleUnavailable
from tests.oracle.jvm import Jvm

#: Kafka's assignors, by the names that the Java side knows.
KAFKAS = ("range", "roundrobin", "sticky", "cooperative-sticky")

_WARM_UP_RUNS = 3
#: A million partitions, three rounds at a time.
_HEAP = "6g"


class WarmUp(NamedTuple):
    """The warm-up of a round: three runs and ``at_least_s``, unless that takes ``at_most_s``."""

    at_least_s: float
    at_most_s: float


class JavaLeader:
    """A JVM with Kafka's assignors."""

    def __init__(self, built: Built, warm_up: WarmUp) -> None:
        self._jvm = Jvm(built, "speed", heap=_HEAP)
        self.warm_up = warm_up
        self._slow: dict[str, float] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="groupstorm-speed-")

    def load(
        self, assignor: str, topics: Mapping[str, int], rounds: Mapping[str, Sequence[JoinedMember]]
    ) -> dict[str, str]:
        """Hand over the rounds and warm up on each; returns the digests of Kafka's answers."""
        self._ask({"do": "clear"})
        self._slow.clear()
        digests: dict[str, str] = {}
        for name, members in rounds.items():
            file = Path(self._folder.name, "round")
            file.write_bytes(_round_bytes(topics, members))
            self._ask({"do": "load", "round": name, "assignor": assignor, "file": str(file)})
            self._warm_up(name)
            digests[name] = self._ask({"do": "digest", "round": name})["sha256"]
        return digests

    def _warm_up(self, name: str) -> None:
        start = time.monotonic()
        runs: list[float] = []
        while len(runs) < _WARM_UP_RUNS or time.monotonic() - start < self.warm_up.at_least_s:
            runs.append(self.run_ms(name))
            if time.monotonic() - start > self.warm_up.at_most_s:
                if len(runs) < _WARM_UP_RUNS:
                    self._slow[name] = min(runs)
                return

    def run_ms(self, name: str) -> float:
        """CPU milliseconds of one more run of a round; one that is too slow to warm up is not run again."""
        if name in self._slow:
            return self._slow[name]
        return float(self._ask({"do": "run", "round": name})["cpu_ms"])

    def sublist_ms(self, members: int, partitions: int) -> tuple[float, float]:
        """KAFKA-12464's loop one by one, and its subList form; the least of three after a warm-up."""
        request = {"do": "sublist", "members": members, "partitions": partitions}
        runs = [self._ask(request) for _ in range(4)][1:]
        return min(run["one_by_one_ms"] for run in runs), min(run["sublist_ms"] for run in runs)

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._jvm.ask(json.dumps(request)))
        return answer

    def __enter__(self) -> JavaLeader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jvm.close()
        self._folder.cleanup()


def digest(answer: Mapping[str, bytes]) -> str:
    """The digest of our answer, as the Java side makes one of Kafka's."""
    result = hashlib.sha256()
    for member in sorted(answer):
        for data in (member.encode(), answer[member]):
            result.update(pack(">i", len(data)) + data)
    return result.hexdigest()


def before_kafka_9987(built: Built) -> Built:
    """Measure with kafka-clients 2.5.0, whose sticky assignors know no constrained form."""
    folder = CACHE / "lib-kafka-clients-2.5.0"
    jar = folder / "kafka-clients-2.5.0.jar"
    if not jar.exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise OracleUnavailable("Maven was not found: install it (Debian: apt install maven)")
        command = [maven, "-B", "-q", "-f", str(SOURCES / "pom.xml"), "-P", "before-kafka-9987"]
        answer = subprocess.run(
            [*command, f"-Doracle.lib={folder}", "dependency:copy"], capture_output=True, check=False
        )
        if answer.returncode != 0:
            raise OracleUnavailable("Maven cannot fetch kafka-clients 2.5.0")
    return Built(built.java, os.pathsep.join([str(jar), built.classpath]))


def _round_bytes(topics: Mapping[str, int], members: Sequence[JoinedMember]) -> bytes:
    parts = [pack(">i", len(topics))]
    parts += [_string(topic) + pack(">i", count) for topic, count in topics.items()]
    parts.append(pack(">i", len(members)))
    parts += [_string(member) + pack(">i", len(data)) + data for member, _, data in members]
    return b"".join(parts)


def _string(text: str) -> bytes:
    return pack(">H", len(text)) + text.encode("ascii")
