"""Kafka's own coordinator as the oracle: every scenario's answers, field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario

_GOLDEN = Path(__file__).parent / "golden"


def _cases() -> list[Any]:
    cases = []
    for file in sorted(_GOLDEN.glob("*.cases.jsonl")):
        answers = file.with_name(file.name.replace(".cases.", ".kafka-4.3.1.")).read_text(encoding="utf-8")
        lines = zip(file.read_text(encoding="utf-8").splitlines(), answers.splitlines(), strict=True)
        cases += [pytest.param(line, answer, id=json.loads(answer)["id"]) for line, answer in lines]
    return cases


@pytest.mark.parametrize(("line", "answer"), _cases())
def test_answers_are_kafkas(line: str, answer: str) -> None:
    expected = json.loads(answer)
    actual = json.loads(json.dumps(run_scenario(read_scenario(line, "golden"), changes=False)))
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
