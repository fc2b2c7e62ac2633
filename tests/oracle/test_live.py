"""Against Kafka's own classes, where there are Java and Maven to run them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.oracle import golden
from tests.oracle.build import OracleUnavailable, build
from tests.oracle.comparison import changes_only
from tests.oracle.coordinator import COMMAND, compare
from tests.oracle.faults import Late
from tests.oracle.jvm import Jvm
from tests.oracle.running import as_line
from tests.oracle.scripts.group_scripts import KINDS
from tests.oracle.transcripts import transcript

pytestmark = pytest.mark.slow


SCRIPTS = 400


@pytest.fixture(scope="module")
def kafka() -> Iterator[Jvm]:
    try:
        built = build()
    except OracleUnavailable as problem:
        pytest.skip(str(problem))
    with Jvm(built, COMMAND) as jvm:
        yield jvm


def test_random_scripts_are_answered_as_kafka_answers_them(kafka: Jvm) -> None:
    outcome = compare(kafka.ask, SCRIPTS, seed=2, shown_max=1)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.coverage.scripts == SCRIPTS


@pytest.mark.parametrize("kind", KINDS)
def test_scripts_of_consumer_groups_and_migrations_are_answered_as_kafka_answers_them(
    kafka: Jvm, kind: str
) -> None:
    outcome = compare(kafka.ask, SCRIPTS, seed=2, shown_max=1, kind=kind)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.coverage.scripts == SCRIPTS
    assert len(outcome.coverage.reconciliations) >= 11, "every state after each other one"


def test_the_golden_answers_are_kafkas(kafka: Jvm) -> None:
    for script, answer in golden.read():
        assert changes_only(json.loads(kafka.ask(as_line(script)))) == answer, script["id"]


def test_a_fault_is_found_against_kafka_too(kafka: Jvm) -> None:
    outcome = compare(kafka.ask, 20, seed=2, shown_max=1, coordinator=Late)
    assert outcome.different
    assert len(outcome.found[0].script["steps"]) <= 4
