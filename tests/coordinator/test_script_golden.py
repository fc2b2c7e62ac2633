"""Kafka's own coordinator as the oracle: every scenario's answers, field by field; and a few hundred short
random scripts (`./dev oracle coordinator --write-golden`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groupstorm.coordinator.config import Compatibility
from groupstorm.coordinator.script.run import run_scenario
from groupstorm.coordinator.script.scenario import read_scenario
from tests.oracle import golden
from tests.oracle.choosing import Golden
from tests.oracle.comparison import changes_only, difference
from tests.oracle.coverage import Coverage
from tests.oracle.differential import our_answer
from tests.oracle.tables import ALL_TRANSITIONS, UNREACHABLE_TRANSITIONS
from tests.oracle.transcripts import transcript

_GOLDEN = Path(__file__).parent / "golden"


_FILES = {
    (kafka, file.name.removesuffix(".cases.jsonl")): (file, answers)
    for kafka in (Compatibility.KAFKA_4_3_1, Compatibility.KAFKA_4_4_0)
    for file in sorted(_GOLDEN.glob("*.cases.jsonl"))
    if (answers := file.with_name(file.name.replace(".cases.", f".kafka-{kafka}."))).exists()
}


def _lines(file: Path, answers: Path) -> Iterator[tuple[str, str]]:
    return zip(file.read_text("utf-8").splitlines(), answers.read_text("utf-8").splitlines(), strict=True)


def _cases(kafka: Compatibility = Compatibility.KAFKA_4_3_1) -> list[Any]:
    return [
        pytest.param(line, answer, id=json.loads(answer)["id"])
        for (release, _), files in _FILES.items()
        if release is kafka
        for line, answer in _lines(*files)
    ]


@pytest.mark.parametrize(("kafka", "name"), _FILES)
def test_answers_are_kafkas(kafka: Compatibility, name: str) -> None:
    for line, answer in _lines(*_FILES[kafka, name]):
        expected = json.loads(answer)
        scenario = read_scenario(line, "golden")
        actual = json.loads(json.dumps(run_scenario(scenario, changes=False, kafka=kafka)))
        for ours, kafkas in zip(actual["events"], expected["events"], strict=False):
            assert ours == kafkas, expected["id"]
        assert actual == expected, expected["id"]


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


_RANDOM = list(golden.read())


@pytest.mark.parametrize("one", _RANDOM, ids=lambda one: one.case["id"])
def test_answers_to_random_scripts_are_kafkas(one: Golden) -> None:
    ours = changes_only(our_answer(one.case))
    found = difference(one.answer, ours)
    assert found is None, transcript(one.case, one.answer, ours)


@pytest.mark.slow
def test_the_golden_scripts_take_every_transition() -> None:
    coverage = Coverage()
    for one in _RANDOM:
        our_answer(one.case, coverage.watch)
    assert set(ALL_TRANSITIONS) - set(coverage.transitions) == set(UNREACHABLE_TRANSITIONS)
