"""Kafka's answers to every case, kept beside the tests: machines without Java compare with them, too.

`python -m tests.conformance.raw.recorded` plays the cases on Kafka and writes the file anew. Look at the
difference before you commit it: Kafka has to have changed, or a case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groupstorm.clients.brokers import JVM
from tests.conformance.backends import QUICK, STREAMS, Backends
from tests.conformance.raw.cases import CASES
from tests.conformance.raw.running import play

#: By the release of Kafka that the cases are about, JDK 17: one case per line.
FILES = {
    version: Path(__file__).with_name(f"answers.kafka-{version}.jsonl")
    for version in (QUICK.version, STREAMS.version)
}

Answers = list[dict[str, Any]]


def read() -> Mapping[str, Answers]:
    """Case name -> Kafka's answers as plain values, in the order in which they were received."""
    lines = [line for file in FILES.values() for line in file.read_text("utf-8").splitlines()]
    return {line["case"]: line["answers"] for line in map(json.loads, lines)}


def write(answers: Mapping[str, Answers]) -> None:
    for version, file in FILES.items():
        lines = [
            json.dumps({"case": case.name, "answers": answers[case.name]}, ensure_ascii=True)
            for case in CASES
            if case.configuration.version == version
        ]
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main() -> int:
    backends = Backends()
    try:
        played = play(backends, JVM, CASES)
    finally:
        backends.close()
    failed = {
        name: result.failure or result.unavailable
        for name, result in played.items()
        if result.failure or result.unavailable
    }
    for name, why in failed.items():
        print(f"{name}: {why}", file=sys.stderr)
    if not failed:
        write({case.name: played[case.name].answers for case in CASES})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
