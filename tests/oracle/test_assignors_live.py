"""Against Kafka's own assignors, of earlier releases too, where there are Java and Maven to run them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.needs import needed
from tests.oracle.assignors import golden
from tests.oracle.assignors.differential import compare
from tests.oracle.assignors.faults import untidy
from tests.oracle.assignors.report import transcript
from tests.oracle.assignors.sides import CONSUMER, SERVER, MembersSide
from tests.oracle.build import Built
from tests.oracle.history import ask, releases
from tests.oracle.jvm import Jvm
from tests.oracle.running import Ask, as_line
from tests.soaking import sizes
from tools.historical_assignors.bug_histories import load
from tools.historical_assignors.comparison import recorded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[CONSUMER, SERVER], ids=lambda side: side.command)
def sides(request: pytest.FixtureRequest, built: Built) -> Iterator[tuple[MembersSide, Ask]]:
    with Jvm(built, request.param.command) as kafka:
        yield request.param, kafka.ask


@pytest.mark.parametrize("count", sizes(200, 10_000, within_minutes=60))
def test_random_cases_are_answered_as_kafka_answers_them(sides: tuple[MembersSide, Ask], count: int) -> None:
    side, ask = sides
    outcome = compare(side, ask, side.random_cases(2, count), shown_max=1)
    assert outcome.different == [], "\n\n".join(transcript(*found) for found in outcome.found)
    assert outcome.count == count


@pytest.mark.soak
def test_the_golden_answers_are_kafkas(sides: tuple[MembersSide, Ask]) -> None:
    side, ask = sides
    for case, answer in golden.read(side):
        assert json.loads(ask(as_line(case))) == answer, case["id"]


def test_a_fault_is_found_against_kafka_too(sides: tuple[MembersSide, Ask]) -> None:
    side, ask = sides
    outcome = compare(untidy(side), ask, side.random_cases(2, 40), shown_max=1)
    assert outcome.different
    assert len(outcome.found[0].case["members"]) == 1


@pytest.mark.parametrize("name", ["kafka-7026", "kafka-12984", "kafka-15170"])
def test_kafka_answers_as_was_recorded(name: str) -> None:
    """Before 2.4 with the older interface; with subscriptions of version 1; with racks."""
    story = load(name)
    with needed():
        asked = [told for release in releases(story) for told in ask(story, release)]
    assert asked == recorded(name)
