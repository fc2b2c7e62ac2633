"""Against Kafka's own classes, where there are Java and Maven to run them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from groupstorm.coordinator.config import Compatibility
from tests.needs import needed
from tests.oracle import golden
from tests.oracle.build import Built, build_coordinator
from tests.oracle.comparison import changes_only, difference
from tests.oracle.coordinator import COMMAND, RELEASES, SCRIPTS, compare
from tests.oracle.differential import our_answer
from tests.oracle.faults import Late
from tests.oracle.jvm import Jvm
from tests.oracle.running import as_line
from tests.oracle.scripts.group_scripts import KINDS
from tests.oracle.transcripts import transcript
from tests.soaking import sizes

pytestmark = pytest.mark.slow

in_both_sizes = pytest.mark.parametrize("scripts", sizes(100, 10_000, within_minutes=120))


@pytest.fixture(scope="module")
def kafka(built: Built) -> Iterator[Jvm]:
    with Jvm(built, COMMAND) as jvm:
        yield jvm


@in_both_sizes
def test_random_scripts_are_answered_as_kafka_answers_them(kafka: Jvm, scripts: int) -> None:
    outcome = compare(kafka.ask, scripts, seed=2, shown_max=1)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.coverage.scripts == scripts


@in_both_sizes
@pytest.mark.parametrize("kind", KINDS)
def test_scripts_of_consumer_groups_and_migrations_are_answered_as_kafka_answers_them(
    kafka: Jvm, kind: str, scripts: int
) -> None:
    outcome = compare(kafka.ask, scripts, seed=2, shown_max=1, kind=kind)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.coverage.scripts == scripts
    assert len(outcome.coverage.reconciliations) >= 11, "every state after each other one"


@pytest.fixture(scope="module")
def newest(built: Built) -> Iterator[Jvm]:
    """The coordinator of the newest release, where Maven can fetch it."""
    with needed():
        coordinator = build_coordinator(RELEASES[-1])
    with Jvm(coordinator, COMMAND) as jvm:
        yield jvm


@pytest.mark.parametrize("scripts", sizes(40, 10_000, within_minutes=120))
@pytest.mark.parametrize("kind", SCRIPTS)
def test_scripts_are_answered_as_the_newest_kafka_answers_them(newest: Jvm, kind: str, scripts: int) -> None:
    release = Compatibility(RELEASES[-1])
    outcome = compare(newest.ask, scripts, seed=3, shown_max=1, kind=kind, kafka=release)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.coverage.scripts == scripts


def test_a_failed_append_leaves_the_background_work_alone(newest: Jvm) -> None:
    """A regular expression is resolved on another thread: its records are not the request's own."""
    join = {"op": "chb", "epoch": 0, "rebalance": 300_000, "owned": {}}
    script = {
        "id": "regex",
        "config": {"topics": {"bar": 1}},
        "steps": [
            {**join, "as": "a", "member": "m", "regex": "foo"},
            {**join, "as": "b", "member": "n", "regex": "ba.*"},
            {"op": "advance", "ms": 10_001},
            {"op": "chb", "as": "a", "regex": "foo.+", "append_error": "RECORD_LIST_TOO_LARGE"},
        ],
    }
    ours = our_answer(script, kafka=Compatibility(RELEASES[-1]))
    assert ours["events"][-1]["groups"]["g"]["epoch"] == 2
    assert difference(json.loads(newest.ask(as_line(script))), ours) is None


@pytest.mark.soak
def test_the_golden_answers_are_kafkas(kafka: Jvm) -> None:
    for script, answer in golden.read():
        assert changes_only(json.loads(kafka.ask(as_line(script)))) == answer, script["id"]


def test_a_fault_is_found_against_kafka_too(kafka: Jvm) -> None:
    outcome = compare(kafka.ask, 20, seed=2, shown_max=1, coordinator=Late)
    assert outcome.different
    assert len(outcome.found[0].script["steps"]) <= 4
