"""A member of a consumer group whose poll() throws: when it does so, and that it does so once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.storms_in_memory import START, scenario, storm
from tests.storms.test_consumer_group_by_hand import rows
from tests.storms.transcript import WORLD

CONSUMER: dict[str, Any] = {**WORLD, "group.protocol": "consumer"}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("latency_ms", "failed_us"), [(12, 48_000), (12.5, 50_001), (25, 100_001)])
def test_an_error_that_comes_at_the_instant_of_a_poll_is_thrown_by_the_next_one(
    exact: bool, latency_ms: float, failed_us: int
) -> None:
    """Two members, and room for one: the second one looks up the coordinator and is refused, four ways after
    the start. The application polls every 50 ms and is inside poll() from then on."""
    full = {**CONSUMER, "members": 2, "group.consumer.max.size": 1, "net_latency_ms": latency_ms}
    [(at_us, _)] = storm(scenario([START], **full), exact=exact).events("member_failed")
    assert at_us == failed_us


@pytest.mark.parametrize("commits", [False, True])
def test_poll_throws_if_the_pattern_matches_no_topic_when_the_assignment_is_taken(commits: bool) -> None:
    """The application polls at 10 s, and the topic is deleted at 3 s."""
    delete = {"at_ms": 3_000, "do": "delete-topic", "topic": "topic-0"}
    settings = {
        "members": 1,
        "poll_interval_ms": 10_000,
        "topic_pattern": "topic-.*",
        "metadata.max.age.ms": 5_000,
    }
    world = scenario([START, delete], **{**CONSUMER, **settings, "enable.auto.commit": commits})
    assert rows(storm(world), 9_000, 11_000) == ["10000 member_failed member-0 IllegalArgumentException"]
