"""Our answers are Kafka's, lists in order (golden/README.md says where they come from)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupstorm.assignors.cases import answers

GOLDEN = Path(__file__).parent / "golden"


def _lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def _pairs(name: str) -> list[tuple[str, str]]:
    return list(zip(_lines(f"{name}.cases.jsonl"), _lines(f"{name}.kafka-4.3.1.jsonl"), strict=True))


@pytest.mark.parametrize("name", ["assign-consumer", "three-rounds"])
def test_answers_equal_kafkas(name: str) -> None:
    pairs = _pairs(name)
    ours = list(answers(case.encode() for case, _ in pairs))
    differing = [
        f"case {case}\nours {mine}\nKafka {kafkas}"
        for (case, kafkas), mine in zip(pairs, ours, strict=True)
        if json.loads(mine) != json.loads(kafkas)
    ]
    assert not differing, f"{len(differing)} of {len(pairs)} differ:\n" + "\n\n".join(differing[:3])


def test_unequal_subscriptions_can_take_a_third_round() -> None:
    """Four joins of one cooperative group after one change: 20, 27, 28 and 28 of 28 partitions owned."""
    kafkas = [json.loads(line) for line in _lines("three-rounds.kafka-4.3.1.jsonl")]
    assert [sum(map(len, answer["assignment"].values())) for answer in kafkas] == [20, 27, 28, 28]
    assert not any(answer["constrained"] for answer in kafkas)
