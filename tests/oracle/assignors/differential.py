"""A comparison of Kafka's assignors and ours on equal cases."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.oracle.running import Ask, Case, ahead, as_line
from tests.oracle.shrinking import shrink

Answer = dict[str, Any]


class Verdict(NamedTuple):
    """The answers of both sides to a case, and what is wrong with ours ("": nothing).

    ``ours``: our answers by how they were asked for. ``kafka_is_valid`` is False where Kafka refuses the case
    or answers with no valid assignment.
    """

    kafkas: Answer
    ours: Mapping[str, Answer]
    wrong: str
    kafka_is_valid: bool


class Side(Protocol):
    """Assignors that are held against Kafka's. ``command`` is the Java side's name for them."""

    @property
    def command(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def assignors(self) -> Sequence[str]: ...

    @property
    def measured_in(self) -> str:
        """Return the unit that `size` counts."""

    @property
    def golden_path(self) -> Path:
        """Where the golden cases lie."""

    def random_cases(self, seed: int, count: int) -> Iterator[Case]:
        """The first cases of a seed, the assignors in turn; each depends on seed and number alone."""

    def judge(self, case: Case, kafkas: Answer) -> Verdict: ...

    def form(self, case: Case, kafkas: Answer) -> str:
        """Which of Kafka's algorithms the case runs."""

    def size(self, case: Case) -> int: ...

    @property
    def answer(self) -> Callable[[Case], Answer]:
        """Our answer to a case; InputError for what is none."""

    def write_golden(self, ask: Ask) -> int:
        """Choose golden cases and ask Kafka anew; how many were written."""


class Found(NamedTuple):
    """A case that the two sides answer differently, shrunk."""

    case: Case
    verdict: Verdict


@dataclass
class Outcome:
    """The outcome of a run; counts are by assignor and form.

    ``invalid``: Kafka refused or its answer was no valid assignment; ``refusals``: by assignor and
    exception. ``different``: ids of cases that differ; ``found``: the first of them, shrunk.
    """

    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    size_max: Counter[tuple[str, str]] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    our_cpu_seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.cases.total()


def compare(
    side: Side,
    ask: Ask,
    cases: Iterable[Case],
    *,
    shown_max: int,
    on_progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """All cases through both sides; the first ``shown_max`` differences are shrunk."""
    outcome = Outcome()
    for batch, answers in ahead(ask, cases):
        for case, kafkas in zip(batch, answers.result(), strict=True):
            start = time.thread_time()
            verdict = side.judge(case, kafkas)
            outcome.our_cpu_seconds += time.thread_time() - start
            _count(outcome, side, case, verdict)
            if verdict.wrong and len(outcome.found) < shown_max:
                outcome.found.append(shrunk(side, ask, case))
        on_progress(outcome)
    return outcome


def _count(outcome: Outcome, side: Side, case: Case, verdict: Verdict) -> None:
    row = case["assignor"], side.form(case, verdict.kafkas)
    outcome.cases[row] += 1
    outcome.size_max[row] = max(outcome.size_max[row], side.size(case))
    if not verdict.kafka_is_valid:
        outcome.invalid[row] += 1
    if "error" in verdict.kafkas:
        outcome.refusals[case["assignor"], verdict.kafkas["error"]] += 1
    if verdict.wrong:
        outcome.wrong[row] += 1
        outcome.different.append(case["id"])


def shrunk(side: Side, ask: Ask, case: Case) -> Found:
    """The smallest case that the two sides still answer differently."""

    def verdict(candidate: Case) -> Verdict:
        return side.judge(candidate, json.loads(ask(as_line(candidate))))

    def differs(candidate: Case) -> bool:
        side.answer(candidate)  # Kafka is asked about cases alone
        return bool(verdict(candidate).wrong)

    smallest = shrink(case, differs)
    return Found(smallest, verdict(smallest))
