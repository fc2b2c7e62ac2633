"""Scenarios that repeat a real run: names of members and topics, durations of replacements."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.scenario.files import parse
from tests.storms.storms_in_memory import FIXED, START, scenario, storm

SMALL = {**FIXED, "members": 3, "partitions": 6}


def test_members_and_topics_have_the_names_that_the_scenario_gives_them() -> None:
    rules = [{"members": [0], "name": "app-b"}, {"members": [2], "name": "app-a", "instance": "pod-a"}]
    topics = {"orders": 4, "payments": 2}
    what = scenario([START], **SMALL, member_settings=rules, topic_partitions=topics)
    result = storm(what)
    started = {event.member: (event.instance, event.topics) for _, event in result.events("member_started")}
    both = ("orders", "payments")
    assert started == {"app-b": (None, both), "member-1": (None, both), "app-a": ("pod-a", both)}
    owned = [name for _, event in result.events("partitions_assigned") for name in event.partitions]
    assert sorted(owned) == [*(f"orders-{n}" for n in range(4)), "payments-0", "payments-1"]
    resolved = what.resolve(None, 1, {})
    assert parse(resolved.as_yaml(), "yaml", "x").resolve(None, None, {}).as_yaml() == resolved.as_yaml()


def test_rates_of_records_go_to_topics_by_name() -> None:
    topics = {"orders": 2, "payments": 1}
    rates = {"orders": 50, "others": 0}
    result = storm(scenario([START], **SMALL, topic_partitions=topics, record_rate=rates))
    [(_, first)] = result.events("scenario_started")
    assert first.partitions == ("orders-0", "orders-1", "payments-0")
    assert (result.figures.records_processed or 0) > 0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"member_settings": [{"members": [0, 1], "name": "x"}]}, "one member that has it"),
        ({"member_settings": [{"members": [0], "name": "member-1"}]}, "members 0 and 1 have this name"),
        ({"topic_partitions": {"a b": 1}}, "topic_partitions: 'a b': expected letters"),
        ({"topic_partitions": {"a": 0}}, "topic_partitions: 0 lies outside 1"),
        ({"topic_partitions": {"a": 1}, "application": "streams"}, "is not for application: streams"),
    ],
)
def test_names_that_are_refused(settings: dict[str, Any], complaint: str) -> None:
    strategy = {} if "application" in settings else {"partition.assignment.strategy": "range"}
    with pytest.raises(InputError, match=complaint):
        scenario([START], **{"members": 3, **strategy, **settings}).resolve(None, 1, {})


def test_a_rolling_restart_takes_the_durations_that_its_step_gives() -> None:
    """SIGTERM to the first at 60 s; each new process polls and is ready after its own times. The last one,
    of which the step says nothing, takes those of the settings: 7 s and 4 s."""
    step = {"at_ms": 60_000, "do": "rolling-restart", "start_ms": [1_000, 20_000], "ready_ms": [500, 3_000]}
    settings = {
        **SMALL,
        "stop_grace_ms": 0,
        "start_ms": {"exactly": 7_000},
        "ready_ms": {"exactly": 4_000},
        "net_latency_ms": 0,
    }
    what = scenario([START, step], **settings)
    result = storm(what)
    polls = [time_us // 1000 for time_us, _ in result.events("member_started")][3:]
    stops = [time_us // 1000 for time_us, event in result.events("step_taken", detail="SIGTERM")]
    assert [round(at_ms, -2) for at_ms in stops] == [60_000, 61_500, 84_500]
    assert [round(at_ms, -2) for at_ms in polls] == [61_000, 81_500, 91_500]
    assert what.resolve(None, 1, {}).steps[1].written()["start_ms"] == [1_000, 20_000]
