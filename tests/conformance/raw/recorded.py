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
from tests.conformance.backends import Backends
from tests.conformance.raw.cases import CASES
from tests.conformance.raw.running import play

#: Kafka 4.3.1, JDK 17: one case per line.
FILE = Path(__file__).with_name("answers.kafka-4.3.1.jsonl")

Answers = list[dict[str, Any]]


def read() -> Mapping[str, Answers]:
    """Case name -> Kafka's answers as plain values, in the order in which they were received."""
    lines = FILE.read_text("utf-8").splitlines()
    return {line["case"]: line["answers"] for line in map(json.loads, lines)}


def write(answers: Mapping[str, Answers]) -> None:
    lines = [
        json.dumps({"case": name, "answers": given}, ensure_ascii=True) for name, given in answers.items()
    ]
    FILE.write_text("".join(f"{line}\n" for line in lines), "utf-8")


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
