"""Random series of bytes against a quota: how long a client has to wait, with us and with Kafka.

`python -m tests.broker.quotas.throttling` records `golden/`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from groupstorm.broker.quotas import Rate, Windows
from tests.conformance.programs.building import answers

PROGRAM = Path(__file__).with_name("Throttling.java")
GOLDEN = Path(__file__).parent / "golden" / "throttling.kafka-4.3.1.txt"


class Case(NamedTuple):
    windows: Windows
    bytes_per_second: int
    records: Sequence[tuple[int, int]]


def draw_case(draw: random.Random) -> Case:
    windows = Windows(draw.choice((11, 11, 11, 1, 2, 5)), draw.choice((1000, 1000, 2000)))
    quota = draw.choice((1, 100, 1000, 5000))
    now_ms, records = draw.randrange(10**6), []
    for _ in range(draw.choice((3, 20, 60))):
        now_ms += draw.choice((0, 1, 10, 100, 500, 999, 1000, 1001, 3000, 12_000))
        size = draw.choice((0, 1, quota // 2, quota, quota * 3, quota * 20))
        records.append((now_ms, -size if draw.random() < 0.1 else size))
    return Case(windows, quota, records)


def throttle_times(case: Case) -> str:
    """Ours."""
    rate = Rate(case.windows)
    times = []
    for now_ms, size in case.records:
        rate.record(size, now_ms)
        times.append(rate.throttle_ms(case.bytes_per_second, now_ms))
    return " ".join(map(str, times))


def ask_kafka(cases: Sequence[Case]) -> list[str]:
    """Kafka's. Raises ProgramUnavailable."""
    return answers(PROGRAM, map(_line, cases))


def _line(case: Case) -> str:
    numbers = [number for record in case.records for number in record]
    return " ".join(map(str, (*case.windows, case.bytes_per_second, *numbers)))


if __name__ == "__main__":
    recorded = ask_kafka([draw_case(random.Random(seed)) for seed in range(200)])
    GOLDEN.write_text("".join(f"{line}\n" for line in recorded), "utf-8")
