"""The summary of a run, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.oracle.assignors.differential import Answer, Outcome, Side, Verdict
from tests.oracle.report import differences, table, times
from tests.oracle.running import Case, Seconds, as_line


def summary(outcome: Outcome, side: Side, seed: int, seconds: Seconds) -> str:
    """Counts, refusals, time, differences."""
    lines = [f"{side.title}, seed {seed}", f"cases {outcome.count:,}", *_counts(outcome, side.measured_in)]
    lines += [*_refusals(outcome), times("cases", outcome.count, seconds)]
    lines += differences(outcome.different, (transcript(*found) for found in outcome.found))
    return "\n".join(lines)


def _counts(outcome: Outcome, measured_in: str) -> Iterator[str]:
    head = ("assignor", "form", "cases", f"{measured_in}, most", "Kafka's answer invalid", "differ")
    counters = (outcome.cases, outcome.size_max, outcome.invalid, outcome.wrong)
    rows = [(*row, *(f"{counter[row]:,}" for counter in counters)) for row in sorted(outcome.cases)]
    rows.append(("all", "", *(f"{n:,}" for n in _totals(outcome))))
    yield from table(head, rows, texts=2)


def _totals(outcome: Outcome) -> tuple[int, int, int, int]:
    largest = max(outcome.size_max.values(), default=0)
    return outcome.count, largest, outcome.invalid.total(), outcome.wrong.total()


def _refusals(outcome: Outcome) -> Iterator[str]:
    yield f"refused by Kafka: {outcome.refusals.total():,}"
    for (assignor, error), count in sorted(outcome.refusals.items()):
        yield f"  {assignor}: {error}  {count:,}"


def transcript(case: Case, verdict: Verdict) -> str:
    """A difference: the case, ready to be piped into `groupstorm assign`, and the answers to it."""
    answers = {"KAFKA": verdict.kafkas, **verdict.ours}
    width = max(map(len, answers))
    lines = [f"  {name:{width}}  {_text(answer)}" for name, answer in answers.items()]
    return "\n".join([f"case {case['id']}: {verdict.wrong}", f"  {as_line(case)}", *lines])


def _text(answer: Answer) -> str:
    return json.dumps({name: value for name, value in answer.items() if name != "id"}, ensure_ascii=False)
