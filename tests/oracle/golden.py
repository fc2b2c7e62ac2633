"""Golden answers: a few hundred short scripts with what Kafka answered, for machines without Java.

Chosen among many more, the shortest first: those that reach something that the chosen ones have not (an
answer's error, a request in a state, a transition, a way in or out), then those in which something comes
right after something else for the first time, then any.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tests.oracle.choosing import Candidate, Golden, choose, read_golden
from tests.oracle.comparison import Answer, changes_only
from tests.oracle.coverage import Coverage, errors_of
from tests.oracle.differential import our_answer
from tests.oracle.running import Ask, as_line
from tests.oracle.scripts.generator import script_in
from tests.oracle.scripts.workloads import WORKLOADS

PATH = Path(__file__).resolve().parents[1] / "coordinator" / "golden" / "oracle.kafka-4.3.1.jsonl"

SCRIPTS = 300
BYTES_MAX = 1_400_000
_CANDIDATES = 4_000
_SEED = 20_431
#: Moves of a golden script, behind the two that it begins with.
_MOVES = (1, 8)


def read(path: Path = PATH) -> Iterator[Golden]:
    """The scripts and Kafka's answers to them, without states that repeat the one before."""
    return read_golden(path, "script")


def write(ask: Ask, path: Path = PATH) -> int:
    """Choose, ask Kafka, write; how many scripts were written."""
    chosen = choose((_candidate(number, ask) for number in range(_CANDIDATES)), SCRIPTS, BYTES_MAX)
    path.write_text("".join(one.line for one in chosen), encoding="utf-8")
    return len(chosen)


def _candidate(number: int, ask: Ask) -> Candidate:
    generator = random.Random(f"golden:{_SEED}:{number}")
    workload = generator.choice(WORKLOADS)
    few = (min(workload.clients[0], 3), min(workload.clients[1], 4))
    short = replace(workload, clients=few, moves_count=_MOVES)
    script = script_in(short, generator, f"golden-{number}")
    answer = json.loads(ask(as_line(script)))
    value = {"script": script, "answer": changes_only(answer)}
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    coverage = Coverage()
    our_answer(script, coverage.watch)
    coverage.count_answer(len(script["steps"]), answer)
    return Candidate(number, line, frozenset(coverage.features()), frozenset(_sequences(answer)))


def _sequences(answer: Answer) -> set[tuple[str, ...]]:
    """Two answers, or two states of groups, one right after the other."""
    events = answer.get("events", ())
    answered = [f"{event['kind']}:{error}" for event in events for error in sorted(errors_of(event))]
    states = [group["state"] for event in events for group in event.get("groups", {}).values()]
    return {("answers", *pair) for pair in pairwise(answered)} | {
        ("states", *pair) for pair in pairwise(states)
    }
