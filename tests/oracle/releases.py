"""Assignors of earlier releases of kafka-clients, each in a JVM of its own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from groupstorm.assignors.cases import read_case
from groupstorm.assignors.userdata import encode_subscription
from tests.oracle.build import CACHE, Built, OracleUnavailable, build
from tests.oracle.jvm import Jvm
from tests.processes import run_build
from tools.historical_assignors.released import Case

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def with_release(built: Built, release: str, cache: Path = CACHE) -> Built:
    """The oracle with the jar of that release in front of the newest one; fetched the first time."""
    name = f"kafka-clients-{release}"
    jar = cache / f"lib-{name}" / f"{name}.jar"
    if not jar.exists():
        _fetch(release, jar.parent)
    return built._replace(classpath=os.pathsep.join([str(jar), built.classpath]))


def _fetch(release: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise OracleUnavailable("Maven was not found: install it (Debian: apt install maven)")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as place:
        artifact = f"-Dartifact=org.apache.kafka:kafka-clients:{release}"
        command = [maven, "-B", "-q", _COPY, artifact, f"-DoutputDirectory={place}"]
        answer = run_build(command)
        if answer.returncode != 0:
            raise OracleUnavailable(f"Maven cannot fetch kafka-clients {release}")
        folder.mkdir(exist_ok=True)
        for jar in Path(place).iterdir():
            jar.replace(folder / jar.name)


class ReleaseJvm:
    """Answers cases as the assignors of one release do, until it is closed."""

    def __init__(self, release: str) -> None:
        self._jvm = Jvm(with_release(build(), release), "released", heap="256m")

    def __call__(self, case: Case) -> Mapping[str, Any]:
        """The answer without an id; members' subscriptions travel as the bytes that they would send."""
        question = {**case, "id": 0}
        members = read_case(json.dumps(question).encode(), "a case of a history").members
        question["members"] = [
            {**written, "subscription_hex": encode_subscription(member.subscription, case["version"]).hex()}
            for written, member in zip(case["members"], members, strict=True)
        ]
        answer = json.loads(self._jvm.ask(json.dumps(question)))
        del answer["id"]
        return answer

    def __enter__(self) -> ReleaseJvm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jvm.close()
