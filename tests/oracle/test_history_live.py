"""Kafka's own classes of earlier releases answer the histories as was recorded."""

from __future__ import annotations

import pytest

from tests.needs import needed
from tests.oracle.history import ask, releases
from tools.historical_assignors.bug_histories import load
from tools.historical_assignors.comparison import recorded


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kafka-7026", "kafka-12984", "kafka-15170"])
def test_kafka_answers_as_was_recorded(name: str) -> None:
    """Before 2.4 with the older interface; with subscriptions of version 1; with racks."""
    story = load(name)
    with needed():
        asked = [told for release in releases(story) for told in ask(story, release)]
    assert asked == recorded(name)
