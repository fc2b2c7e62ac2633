"""`groupstorm script`: scenarios for the coordinator alone, in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from groupstorm.cli.printing import print_made
from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.script.run import run_lines, run_scenario
from groupstorm.coordinator.script.scenario import Scenario
from groupstorm.problems import InputError
from groupstorm.share_records.script import run_records

#: The characters of a line; a longer one is no scenario that anybody wrote.
LINE_MAX: Final = 1 << 24


class KafkaRelease(StrEnum):
    """The releases that scripts are answered as."""

    KAFKA_4_3_1 = "4.3.1"
    KAFKA_4_4_0 = "4.4.0"


def script(
    file: Path | None = None,
    changes: bool = False,
    kafka: KafkaRelease = (KafkaRelease.KAFKA_4_4_0),
    records: bool = False,
) -> None:
    """Run scenarios against the coordinator, as Kafka to the letter: JSON lines in, JSON lines out."""
    if records and kafka is not KafkaRelease.KAFKA_4_4_0:
        raise InputError(f"--records: scripts of records are answered as Kafka 4.4.0, not {kafka.value}")
    run = run_records if records else partial(run_scenario, changes=changes, kafka=Compatibility(kafka.value))
    if file is None:
        _run(sys.stdin, "standard input", run)
        return
    try:
        with file.open(encoding="utf-8") as lines:
            _run(lines, str(file), run)
    except OSError as problem:
        raise InputError(f"{file}: {problem.strerror}") from problem


def _run(file: IO[str], place: str, run: Callable[[Scenario], dict[str, Any]]) -> None:
    """Print each answer at once, so that the answers before a bad line are printed."""
    for answer in run_lines(_lines(file, place), place, run):
        print_made(answer, end="\n", flush=True)


def _lines(file: IO[str], place: str) -> Iterator[str]:
    """The lines; a device may have one that never ends. Raises InputError."""
    while line := file.readline(LINE_MAX + 1):
        if len(line) > LINE_MAX:
            raise InputError(f"{place}: a line of more than {LINE_MAX:,} characters: expected scenarios")
        yield line
