"""The same cases through Kafka's assignors and through ours."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.oracle.assignors.shrinking import shrink
from tests.oracle.assignors.sides import Side
from tests.oracle.assignors.validity import Answer
from tests.oracle.running import Ask, Case, ahead, as_line


class Verdict(NamedTuple):
    """Our answers to a case, as Kafka's and mended, and what is wrong with them ("": nothing).

    ``kafka_is_valid`` is False where Kafka refuses the case or answers with no valid assignment.
    """

    kafkas: Answer
    compatible: Answer
    mended: Answer
    kafka_is_valid: bool
    wrong: str


def judge(side: Side, case: Case, kafkas: Answer) -> Verdict:
    """With ``bug_compat`` ours has to be Kafka's; without, Kafka's if that is valid, else a valid one."""
    compatible = side.answer({**case, "bug_compat": True})
    mended = side.answer(case)
    kafka_is_valid = side.is_valid(case, kafkas)
    wrong = ""
    if compatible != kafkas:
        wrong = "with bug_compat it is not Kafka's"
    elif kafka_is_valid and mended != kafkas:
        wrong = "it is not Kafka's, which is valid"
    elif not kafka_is_valid and not side.is_valid(case, mended):
        wrong = "it is not valid, nor is Kafka's"
    return Verdict(kafkas, compatible, mended, kafka_is_valid, wrong)


class Found(NamedTuple):
    """A case that the two sides answer differently, shrunk."""

    case: Case
    verdict: Verdict


@dataclass
class Outcome:
    """What a run showed; counts are by assignor and form.

    ``invalid``: Kafka refused or its answer was no valid assignment; ``refusals``: by assignor and
    exception. ``different``: ids of cases that differ; ``found``: the first of them, shrunk.
    """

    cases: Counter[tuple[str, str]] = field(default_factory=Counter)
    invalid: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    members_max: Counter[tuple[str, str]] = field(default_factory=Counter)
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
    with ThreadPoolExecutor(max_workers=1) as kafka:
        for batch, answers in ahead(ask, cases, kafka):
            for case, kafkas in zip(batch, answers.result(), strict=True):
                start = time.thread_time()
                verdict = judge(side, case, kafkas)
                outcome.our_cpu_seconds += time.thread_time() - start
                _count(outcome, side, case, verdict)
                if verdict.wrong and len(outcome.found) < shown_max:
                    outcome.found.append(shrunk(side, ask, case))
            on_progress(outcome)
    return outcome


def _count(outcome: Outcome, side: Side, case: Case, verdict: Verdict) -> None:
    row = case["assignor"], side.form(case, verdict.kafkas)
    outcome.cases[row] += 1
    outcome.members_max[row] = max(outcome.members_max[row], len(case["members"]))
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
        return judge(side, candidate, json.loads(ask(as_line(candidate))))

    smallest = shrink(case, lambda candidate: bool(verdict(candidate).wrong))
    return Found(smallest, verdict(smallest))
