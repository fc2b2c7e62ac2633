"""Kafka's own classes as the oracle: every script's answers and states, field by field."""

from __future__ import annotations

import json

import pytest

from tests.share_records.scripts import golden, run_line

_CASES = [
    pytest.param(line, answer, id=json.loads(answer)["id"])
    for name in ("rules", "random")
    for line, answer in golden(name)
]


@pytest.mark.parametrize(("line", "answer"), _CASES)
def test_answers_are_kafkas(line: str, answer: str) -> None:
    expected = json.loads(answer)
    actual = run_line(line)
    for ours, kafkas in zip(actual["events"], expected["events"], strict=False):
        assert ours == kafkas
    assert actual == expected
