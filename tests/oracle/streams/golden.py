"""Golden cases: a few hundred small ones with what Kafka answered, for machines without Java."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from tests.oracle.assignors.differential import Answer
from tests.oracle.choosing import Candidate, Golden, choose, read_golden
from tests.oracle.running import Ask, Case, as_line
from tests.oracle.streams.comparison import form, preserves_active
from tests.oracle.streams.drawing import ASSIGNORS, SMALL, draw_case

PATH = Path(__file__).resolve().parents[2] / "assignors" / "streams" / "golden" / "oracle.kafka-4.3.1.jsonl"

_CASES, _BYTES_MAX = 400, 600_000
_CANDIDATES = 4_000


def read(path: Path = PATH) -> Iterator[Golden]:
    """The cases and Kafka's answers to them."""
    return read_golden(path)


def write(ask: Ask) -> int:
    """Choose, ask Kafka, write; how many cases were written."""
    candidates = (_candidate(number, ask) for number in range(_CANDIDATES))
    chosen = choose(candidates, _CASES, _BYTES_MAX)
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text("".join(one.line for one in chosen), encoding="utf-8")
    return len(chosen)


def _candidate(number: int, ask: Ask) -> Candidate:
    generator = random.Random(f"golden:streams:{number}")
    assignor = ASSIGNORS[number % len(ASSIGNORS)]
    case = draw_case(generator, f"golden-{number}", assignor, SMALL)
    answer = json.loads(ask(as_line(case)))
    line = as_line({"case": case, "answer": answer}) + "\n"
    reached = frozenset((assignor, *trait) for trait in _reached(case, answer))
    pairs = frozenset((*one, *other) for one, other in combinations(sorted(reached), 2))
    return Candidate(number, line, reached, pairs)


def _reached(case: Case, answer: Answer) -> Iterator[tuple[str, ...]]:
    """Traits of a case and its answer."""
    yield "form", form(case)
    yield "error", answer.get("error", "")
    yield "probing", str(answer.get("probing"))
    yield "standbys", str(case["config"]["num_standby_replicas"])
    yield "lag", str(case["config"]["acceptable_recovery_lag"])
    for name in ("end_offset_sums", "given"):
        if name in case:
            yield (name,)
    clients = answer.get("clients", {}).values()
    for kind in ("warmup", "standby_warmup", "standby", "threads"):
        if any(client.get(kind) for client in clients):
            yield (kind,)
    if preserves_active(case):
        yield ("must preserve active",)
    if any(client.get("rack") is None for client in case["clients"]):
        yield ("a client without a rack",)
    if any(None in part[2] for task in case["tasks"] for part in (*task["inputs"], *task["changelogs"])):
        yield ("a broker without a rack",)
