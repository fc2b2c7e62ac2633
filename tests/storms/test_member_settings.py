"""Settings and names of single members, durations of replacements, and settings that a step rolls out."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.storms.scenario.files import parse
from tests.storms.storms_in_memory import FIXED, START, scenario, storm

SMALL: dict[str, Any] = {**FIXED, "members": 3, "partitions": 6, "start_ms": {"exactly": 1000}}


def test_a_rule_gives_some_members_other_settings_and_a_later_rule_wins() -> None:
    rules = [
        {"members": [0, 1], "settings": {"session.timeout.ms": 20_000, "assign_callback_ms": 5}},
        {"members": [1], "settings": {"session.timeout.ms": 30_000}, "instance": "twin"},
    ]
    settings = scenario([START], **SMALL, member_settings=rules).resolve(None, 1, {}).settings
    assert [settings.of_member(n).integer("session.timeout.ms") for n in range(3)] == [20_000, 30_000, 45_000]
    assert [settings.of_member(n).instance for n in range(3)] == [None, "twin", None]
    callbacks = [settings.of_member(n).distribution("assign_callback_ms").largest_us for n in range(3)]
    assert callbacks == [5000, 5000, 0]


def test_a_rule_reaches_a_member_among_several_clients_with_that_clients_defaults() -> None:
    rules = [{"members": [1], "settings": {"heartbeat.interval.ms": 2000}}]
    settings = (
        scenario(
            [START],
            **SMALL,
            client_profile="java,aiokafka",
            member_settings=rules,
            **{"partition.assignment.strategy": "roundrobin"},
        )
        .resolve(None, 1, {})
        .settings
    )
    assert [settings.of_member(n).integer("heartbeat.interval.ms") for n in range(2)] == [3000, 2000]
    assert [settings.of_member(n).integer("session.timeout.ms") for n in range(2)] == [45_000, 10_000]


def test_a_member_with_a_callback_of_its_own_takes_that_time() -> None:
    rules = [{"members": [2], "settings": {"assign_callback_ms": 700}}]
    result = storm(scenario([START], **SMALL, member_settings=rules))
    took = {event.member: event.duration_us for _, event in result.events("partitions_assigned")}
    assert took == {"member-0": 0, "member-1": 0, "member-2": 700_000}


def test_two_processes_with_one_instance_id_fence_each_other() -> None:
    """KIP-345: the coordinator replaces the first member, and fences it when it next asks."""
    rules = [{"members": [1], "instance": "member-0"}]
    settings = {**SMALL, "group.instance.id": "ordinal", "member_settings": rules}
    steps = [{**START, "members": [0, 2]}, {"at_ms": 30_000, "do": "start", "members": [1]}]
    result = storm(scenario(steps, **settings))
    [(_, failed)] = result.events("member_failed")
    assert (failed.member, failed.error) == ("member-0", "FENCED_INSTANCE_ID")


def test_a_release_rolls_out_new_settings_and_the_resolved_scenario_keeps_them() -> None:
    steps = [
        START,
        {"at_ms": 30_000, "do": "rolling-restart", "settings": {"partition.assignment.strategy": ["range"]}},
        {"at_ms": 200_000, "do": "restart", "members": [0], "settings": {"assign_callback_ms": 9}},
    ]
    settings = {**SMALL, "partition.assignment.strategy": ["roundrobin", "range"]}
    what = scenario(steps, **settings)
    resolved = what.resolve(None, 1, {})
    first, second = resolved.settings.release(1), resolved.settings.release(2)
    assert first.names("partition.assignment.strategy") == ("range",)
    assert second.names("partition.assignment.strategy") == ("range",)
    assert second.distribution("assign_callback_ms").largest_us == 9000
    assert parse(resolved.as_yaml(), "yaml", "x").resolve(None, None, {}).as_yaml() == resolved.as_yaml()
    chosen = [event.protocol for _, event in storm(what).events("assignment_computed")]
    assert chosen[0] == "roundrobin"
    assert chosen[-1] == "range"


def test_variants_can_have_releases_of_their_own() -> None:
    text = """
    settings: {members: 3, partitions: 6, start_ms: {exactly: 1s}}
    variants:
      two-steps: {releases: [{session.timeout.ms: 20s}, {session.timeout.ms: 10s}]}
      nothing-new: {}
    steps:
      - {at_ms: 0, do: start}
      - {at_ms: 1m, do: rolling-restart}
      - {at_ms: 5m, do: rolling-restart}
    """
    what = parse(text, "yaml", "f")
    settings = what.resolve("two-steps", 1, {}).settings
    assert [settings.release(n).integer("session.timeout.ms") for n in range(3)] == [45_000, 20_000, 10_000]
    assert all(not step.settings for step in what.resolve("nothing-new", 1, {}).steps)
    again = parse(what.resolve("two-steps", 1, {}).as_yaml(), "yaml", "x").resolve(None, None, {})
    assert [step.release for step in again.steps] == [0, 1, 2]


@pytest.mark.parametrize("by", ["rule", "release"])
def test_a_replay_gives_a_member_of_another_client_that_clients_defaults(by: str) -> None:
    """A run writes all its settings, and those that are written go before the defaults of a client."""
    other = {"settings": {"client_profile": "librdkafka"}}
    rules = {"member_settings": [{"members": [0], **other}]} if by == "rule" else {}
    restart = {"at_ms": 60_000, "do": "restart", "members": [0], **({} if rules else other)}
    resolved = scenario([START, restart], **SMALL, **rules).resolve(None, 1, {})
    for one in (resolved, parse(resolved.as_yaml(), "yaml", "x").resolve(None, None, {})):
        settings = one.settings.release(one.steps[1].release).of_member(0)
        assert settings.integer("max.poll.records") == 1
        assert settings.names("partition.assignment.strategy") == ("range", "roundrobin")


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
