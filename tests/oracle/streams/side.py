"""The task assignors of Kafka Streams, as a side to hold against Kafka's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.oracle.assignors.differential import Answer, Verdict
from tests.oracle.running import Ask, Case
from tests.oracle.streams import comparison, drawing, golden


class StreamsSide:
    """A `Side` whose cases are tasks and clients."""

    command = "streams"
    title = "The task assignors of Kafka Streams 4.3.1 and ours"
    assignors: Sequence[str] = drawing.ASSIGNORS
    measured_in = "tasks"
    golden_path: Path = golden.PATH

    def random_cases(self, seed: int, count: int) -> Iterator[Case]:
        return drawing.random_cases(seed, count)

    def judge(self, case: Case, kafkas: Answer) -> Verdict:
        ours = self.answer(case)
        return Verdict(
            kafkas, {"OURS": ours}, comparison.difference(case, kafkas, ours), "error" not in kafkas
        )

    def form(self, case: Case, kafkas: Answer) -> str:
        return comparison.form(case)

    def size(self, case: Case) -> int:
        return len(case["tasks"])

    def answer(self, case: Case) -> Answer:
        return comparison.answer(case)

    def write_golden(self, ask: Ask) -> int:
        return golden.write(ask)


STREAMS = StreamsSide()
