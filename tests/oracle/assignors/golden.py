"""Golden cases: a few hundred small ones with what Kafka answered, for machines without Java.

Chosen among many more, as many of each form of Kafka's algorithms, the shortest first: those that reach
something that the chosen ones have not, then those that reach two things together for the first time, then
any.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from tests.oracle.assignors import sizes
from tests.oracle.assignors.differential import Answer
from tests.oracle.choosing import Candidate, Golden, choose, read_golden
from tests.oracle.running import Ask, Case, as_line

if TYPE_CHECKING:
    from tests.oracle.assignors.sides import MembersSide

_FOLDER = Path(__file__).resolve().parents[2] / "assignors" / "golden"

Form = tuple[str, str]

#: How many cases are kept of each side at most, and how large the file may be.
CASES = 600
BYTES_MAX = 600_000
_CANDIDATES = 6_000
_SEED = 848


def path(side: MembersSide) -> Path:
    """Where a side's golden cases lie."""
    return _FOLDER / f"oracle-{side.command}.kafka-4.3.1.jsonl"


def read(side: MembersSide) -> Iterator[Golden]:
    """The cases and Kafka's answers to them."""
    return read_golden(path(side))


def write(side: MembersSide, ask: Ask) -> int:
    """Choose, ask Kafka, write; how many cases were written."""
    by_form: dict[Form, list[Candidate]] = {}
    for number in range(_CANDIDATES):
        form, candidate = _candidate(side, number, ask)
        by_form.setdefault(form, []).append(candidate)
    count_max, bytes_max = CASES // len(by_form), BYTES_MAX // len(by_form)
    chosen = [one for candidates in by_form.values() for one in choose(candidates, count_max, bytes_max)]
    chosen.sort(key=lambda one: one.number)
    path(side).write_text("".join(one.line for one in chosen), encoding="utf-8")
    return len(chosen)


def _candidate(side: MembersSide, number: int, ask: Ask) -> tuple[Form, Candidate]:
    generator = random.Random(f"golden:{side.command}:{_SEED}:{number}")
    assignor = side.assignors[number % len(side.assignors)]
    case = side.draw(generator, f"golden-{number}", assignor, sizes.small(generator))
    answer = json.loads(ask(as_line(case)))
    line = as_line({"case": case, "answer": answer}) + "\n"
    reached = frozenset(_reached(side, case, answer))
    pairs = frozenset((*one, *other) for one, other in combinations(sorted(reached), 2))
    return (assignor, side.form(case, answer)), Candidate(number, line, reached, pairs)


def _reached(side: MembersSide, case: Case, answer: Answer) -> Iterator[tuple[str, ...]]:
    """Traits of a case and its answer, each with the assignor and the form that ran."""
    form = (case["assignor"], side.form(case, answer))
    yield form
    yield (*form, "error", answer.get("error", ""))
    if not side.is_valid(case, answer):
        yield (*form, "invalid")
    if any(answer.get("transferring", {}).values()):
        yield (*form, "transferring")
    for name in ("version", "emit_bytes"):
        if name in case:
            yield (*form, name, str(case[name]))
    for name in sorted({name for member in case["members"] for name in member}):
        yield (*form, name)
    yield from ((*form, "count", trait) for trait in _shape(case))


def _shape(case: Case) -> Iterator[str]:
    """Return what is unusual about a case's numbers and texts."""
    members, topics = case["members"], case["topics"]
    partitions = sum(entry["partitions"] for entry in topics.values())
    if partitions < len(members):
        yield "fewer partitions than members"
    if any(entry["partitions"] == 0 for entry in topics.values()):
        yield "a topic without partitions"
    if not all(member["topics"] for member in members):
        yield "a member without topics"
    if any(topic not in topics for member in members for topic in member["topics"]):
        yield "a topic that does not exist"
    if any(len(set(member["topics"])) < len(member["topics"]) for member in members):
        yield "a topic listed twice"
    if not all(member["id"].isascii() for member in members):
        yield "ids beyond ASCII"
    if any(member.get("rack") == "" for member in members):
        yield "a rack without a name"
