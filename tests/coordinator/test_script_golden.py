"""Kafka's own coordinator as the oracle: every scenario's answers, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario

_GOLDEN = Path(__file__).parent / "golden"


def _cases(kafka: Compatibility = Compatibility.KAFKA_4_3_1) -> list[Any]:
    cases = []
    for file in sorted(_GOLDEN.glob("*.cases.jsonl")):
        answers = file.with_name(file.name.replace(".cases.", f".kafka-{kafka}."))
        if not answers.exists():
            continue
        lines = zip(file.open(encoding="utf-8"), answers.open(encoding="utf-8"), strict=True)
        cases += [pytest.param(line, answer, id=json.loads(answer)["id"]) for line, answer in lines]
    return cases


_OF_BOTH = [
    pytest.param(kafka, *case.values, id=case.id)
    for kafka in (Compatibility.KAFKA_4_3_1, Compatibility.KAFKA_4_4_0)
    for case in _cases(kafka)
]


@pytest.mark.parametrize(("kafka", "line", "answer"), _OF_BOTH)
def test_answers_are_kafkas(kafka: Compatibility, line: str, answer: str) -> None:
    expected = json.loads(answer)
    scenario = read_scenario(line, "golden")
    actual = json.loads(json.dumps(run_scenario(scenario, changes=False, kafka=kafka)))
    for ours, kafkas in zip(actual["events"], expected["events"], strict=False):
        assert ours == kafkas
    assert actual == expected


@pytest.mark.parametrize(("line", "answer"), _cases()[:5])
def test_changes_leaves_out_only_states_that_repeat(line: str, answer: str) -> None:
    every = json.loads(answer)["events"]
    last: Any = None
    wanted = []
    for event in every:
        if event["kind"] != "state" or event["groups"] != last:
            wanted.append(event)
        if event["kind"] == "state":
            last = event["groups"]
    actual = run_scenario(read_scenario(line, "golden"), changes=True)
    assert json.loads(json.dumps(actual["events"])) == wanted
