"""Golden answers: a few hundred short scripts with what Kafka answered, for machines without Java.

Chosen among many more, the shortest first: those that reach something that the chosen ones have not (an
answer's error, a request in a state, a transition, a way in or out), then those in which something comes
right after something else for the first time, then any.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.oracle.comparison import Answer, changes_only
from tests.oracle.coverage import Coverage, errors_of
from tests.oracle.differential import Script, our_answer
from tests.oracle.running import as_line
from tests.oracle.scripts.climates import CLIMATES
from tests.oracle.scripts.generator import script_in

PATH = Path(__file__).resolve().parents[1] / "coordinator" / "golden" / "oracle.kafka-4.3.1.jsonl"

SCRIPTS = 300
BYTES_MAX = 1_400_000
_CANDIDATES = 4_000
_SEED = 20_431
#: Moves of a golden script, behind the two that it begins with.
_MOVES = (1, 8)


class Golden(NamedTuple):
    script: Script
    answer: Answer


def read(path: Path = PATH) -> Iterator[Golden]:
    """The scripts and Kafka's answers to them, without states that repeat the one before."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            value = json.loads(line)
            yield Golden(value["script"], value["answer"])


def write(ask: Callable[[str], str], path: Path = PATH) -> int:
    """Choose, ask Kafka, write; how many scripts were written."""
    chosen = _choose([_candidate(number, ask) for number in range(_CANDIDATES)])
    lines = [golden.line for golden in sorted(chosen, key=lambda golden: golden.number)]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


class _Candidate(NamedTuple):
    """``reached``: what the script reached; ``sequences``: what came right after what."""

    number: int
    line: str
    reached: frozenset[tuple[str, ...]]
    sequences: frozenset[tuple[str, ...]]


def _candidate(number: int, ask: Callable[[str], str]) -> _Candidate:
    generator = random.Random(f"golden:{_SEED}:{number}")
    climate = generator.choice(CLIMATES)
    few = (min(climate.clients[0], 3), min(climate.clients[1], 4))
    short = replace(climate, clients=few, moves_count=_MOVES)
    script = script_in(short, generator, f"golden-{number}")
    answer = json.loads(ask(as_line(script)))
    value = {"script": script, "answer": changes_only(answer)}
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    coverage = Coverage()
    our_answer(script, coverage.watch)
    coverage.count_answer(len(script["steps"]), answer)
    return _Candidate(number, line, frozenset(coverage.features()), frozenset(_sequences(answer)))


def _sequences(answer: Answer) -> set[tuple[str, ...]]:
    """Two answers, or two states of groups, one right after the other."""
    events = answer.get("events", ())
    answered = [f"{event['kind']}:{error}" for event in events for error in sorted(errors_of(event))]
    states = [group["state"] for event in events for group in event.get("groups", {}).values()]
    return {("answers", *pair) for pair in pairwise(answered)} | {
        ("states", *pair) for pair in pairwise(states)
    }


def _choose(candidates: list[_Candidate]) -> list[_Candidate]:
    """Those with something new, then those with a new sequence, then any; the shortest first."""
    chosen = _Chosen()
    by_size = sorted(candidates, key=lambda candidate: (len(candidate.line), candidate.number))
    for candidate in by_size:
        if not candidate.reached <= chosen.reached:
            chosen.add(candidate)
    for candidate in by_size:
        if not candidate.sequences <= chosen.sequences:
            chosen.add(candidate)
    for candidate in by_size:
        chosen.add(candidate)
    return list(chosen.candidates.values())


class _Chosen:
    """Candidates by number, as many as fit."""

    def __init__(self) -> None:
        self.candidates: dict[int, _Candidate] = {}
        self.reached: set[tuple[str, ...]] = set()
        self.sequences: set[tuple[str, ...]] = set()
        self._bytes_left = BYTES_MAX

    def add(self, candidate: _Candidate) -> None:
        size = len(candidate.line.encode())
        if candidate.number in self.candidates or len(self.candidates) == SCRIPTS or size > self._bytes_left:
            return
        self.candidates[candidate.number] = candidate
        self.reached |= candidate.reached
        self.sequences |= candidate.sequences
        self._bytes_left -= size
