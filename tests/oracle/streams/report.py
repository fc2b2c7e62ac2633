"""The summary of a run, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.oracle.report import table
from tests.oracle.running import Seconds, as_line
from tests.oracle.streams.comparison import Answer, Found, Outcome

_HEAD = ("assignor", "form", "cases", "tasks, most", "differ")


def summary(outcome: Outcome, title: str, seconds: Seconds) -> str:
    """Counts, refusals, time, differences."""
    lines = [title, f"cases {outcome.count:,}"]
    lines += [*_counts(outcome), *_refusals(outcome), *_times(outcome, seconds), *_differences(outcome)]
    return "\n".join(lines)


def _counts(outcome: Outcome) -> Iterator[str]:
    counters = (outcome.cases, outcome.tasks_max, outcome.wrong)
    rows = [(*row, *(f"{counter[row]:,}" for counter in counters)) for row in sorted(outcome.cases)]
    most = max(outcome.tasks_max.values(), default=0)
    rows.append(("all", "", f"{outcome.count:,}", f"{most:,}", f"{outcome.wrong.total():,}"))
    yield from table(_HEAD, rows, texts=2)


def _refusals(outcome: Outcome) -> Iterator[str]:
    yield f"refused by Kafka: {outcome.refusals.total():,}"
    for (assignor, error), count in sorted(outcome.refusals.items()):
        yield f"  {assignor}: {error}  {count:,}"


def _times(outcome: Outcome, seconds: Seconds) -> Iterator[str]:
    thousands = outcome.count / 1000 or 1
    yield (
        f"seconds per 1,000 cases: Kafka {seconds.kafka_cpu / thousands:.1f} of CPU with the JVM's start, "
        f"ours {seconds.our_cpu / thousands:.1f} of CPU, "
        f"all together {seconds.wall / thousands:.1f} on the clock"
    )


def _differences(outcome: Outcome) -> Iterator[str]:
    yield f"differences: {len(outcome.different):,}"
    if outcome.different:
        yield "  " + ", ".join(outcome.different[:20]) + (" ..." if len(outcome.different) > 20 else "")
    for found in outcome.found:
        yield ""
        yield transcript(found)


def transcript(found: Found) -> str:
    """A difference: the case, ready to be piped into `groupstorm assign`, and the answers to it."""
    return "\n".join(
        [
            f"case {found.case['id']}: {found.wrong}",
            f"  {as_line(found.case)}",
            f"  KAFKA  {_text(found.kafkas)}",
            f"  OURS   {_text(found.ours)}",
        ]
    )


def _text(answer: Answer) -> str:
    return json.dumps({name: value for name, value in answer.items() if name != "id"}, ensure_ascii=False)
