"""The harness itself, without Java: our coordinator stands in for Kafka's, and another has a fault put in."""

from __future__ import annotations

import json

import pytest

from tests.oracle.comparison import difference
from tests.oracle.coordinator import compare
from tests.oracle.differential import Outcome, our_answer
from tests.oracle.faults import DeafToRebalances
from tests.oracle.report import summary
from tests.oracle.running import Seconds
from tests.oracle.transcripts import transcript

_COUNT = 60


def stand_in(line: str) -> str:
    """Our own coordinator in Kafka's place."""
    return json.dumps(our_answer(json.loads(line)))


@pytest.mark.slow
def test_equal_sides_have_no_differences() -> None:
    outcome = compare(stand_in, _COUNT, seed=1, shown_max=3)
    assert outcome.different == []
    assert outcome.coverage.scripts == _COUNT
    assert outcome.coverage.steps > 20 * _COUNT
    assert "differences: 0" in summary(outcome, "title", Seconds(1, 1, 1))


@pytest.fixture(scope="module")
def deaf() -> Outcome:
    return compare(stand_in, _COUNT, seed=1, shown_max=2, coordinator=DeafToRebalances)


@pytest.mark.slow
def test_a_difference_is_shrunk_to_a_few_steps(deaf: Outcome) -> None:
    """Two members, of whom the first hears nothing of the second: nothing of it can be left out."""
    assert deaf.found
    for script, kafkas, ours in deaf.found:
        assert len(script["steps"]) <= 5
        assert script["steps"][-1]["op"] == "heartbeat"
        found = difference(kafkas, ours)
        assert found is not None
        assert (found.kafkas["error"], found.ours["error"]) == ("REBALANCE_IN_PROGRESS", "NONE")
        for index in range(len(script["steps"])):
            shorter = {**script, "steps": script["steps"][:index] + script["steps"][index + 1 :]}
            assert our_answer(shorter) == our_answer(shorter, DeafToRebalances)


@pytest.mark.slow
def test_a_difference_is_printed_as_a_transcript(deaf: Outcome) -> None:
    text = transcript(*deaf.found[0])
    assert text.startswith(f"script {deaf.found[0].script['id']}  config ")
    steps = [line for line in text.splitlines() if line[2:5].strip().isdecimal()]
    assert len(steps) == len(deaf.found[0].script["steps"])
    assert [line.split()[0] for line in text.splitlines() if "ms  heartbeat" in line] == ["KAFKA", "OURS"]
    assert '\n      error: Kafka "REBALANCE_IN_PROGRESS"\n             ours  "NONE"' in text


# --- comparison ------------------------------------------------------------------------------------

_EVENT = {"t": 0, "step": 0, "kind": "heartbeat", "error": "NONE"}
_ANSWER = {"id": "s", "events": [_EVENT], "ids": {}}


def test_an_answer_equals_itself() -> None:
    assert difference(_ANSWER, json.loads(json.dumps(_ANSWER))) is None


@pytest.mark.parametrize(
    "other",
    [
        {**_ANSWER, "events": [{**_EVENT, "t": 1}]},
        {**_ANSWER, "events": []},
        {**_ANSWER, "events": [_EVENT, _EVENT]},
        {**_ANSWER, "ids": {"m1": "x"}},
        {"id": "s", "failed": "why"},
    ],
)
def test_whatever_differs_is_a_difference(other: dict[str, object]) -> None:
    assert difference(_ANSWER, other) is not None
    assert difference(other, _ANSWER) is not None
