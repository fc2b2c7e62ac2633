"""Settings that a trace says beside those of a manifest: who goes first, and how the plan says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout
from groupstorm.storms.scenario.setting_names import How, Measured, inferred
from tests.storms.manifests.manifest_files import consumer_of, env, workload

STARTS = {"quantiles": {0: 8_100, 50: 12_000, 95: 31_400, 100: 31_400}}
ASKED = {"topic_partitions": {"orders": 12, "bills": 3}, "record_rate": 5, "start_ms": STARTS}


def measured(more: Mapping[str, Any] = {}) -> Measured:
    known = {name: inferred(value, "seen") for name, value in {**ASKED, **more}.items()}
    return Measured("hours", known, {"process_ms": "no log says it"})


def plan_of(found: Measured, *objects: dict[str, Any], **given: Any) -> Plan:
    return plan_rollout(consumer_of(*(objects or (workload(),))), given, found)


def test_a_trace_answers_what_the_manifest_leaves_open() -> None:
    plan = plan_of(measured())
    assert {name: plan.settings[name] for name in ASKED} == ASKED
    assert plan.measured == [
        "topic_partitions={orders: 12, bills: 3} (seen)",
        "record_rate=5 (seen)",
        "start_ms={quantiles: {0: 8100, 50: 12000, 95: 31400, 100: 31400}} (seen)",
    ]
    assert plan.unknown == ["process_ms (no log says it)"]
    assert plan_of(measured(), process_ms=3).unknown == []


def test_what_neither_says_is_asked_for_with_the_reason() -> None:
    found = Measured("hours", {}, {"start_ms": "no process comes back"})
    with pytest.raises(InputError, match=r"neither it nor hours says start_ms .*: no process comes back"):
        plan_of(found, partitions=3, record_rate=1)


def test_the_manifest_goes_before_the_trace_and_the_user_before_both() -> None:
    found = measured({"session.timeout.ms": 10_000, "max.poll.interval.ms": 60_000})
    kept = workload(container=env(KAFKA_SESSION_TIMEOUT_MS="30000"))
    plan = plan_of(found, kept, partitions=7)
    assert plan.settings["session.timeout.ms"] == 30_000
    assert plan.settings["max.poll.interval.ms"] == 60_000
    assert "topic_partitions" not in plan.settings
    assert "session.timeout.ms: 10000 in hours (seen), 30000 in the manifest, which counts." in plan.findings


def test_the_first_of_the_default_assignors_is_no_setting_but_may_differ_from_the_manifests() -> None:
    chosen = inferred(["range"], "seen")._replace(how=How.ASSUMED)
    found = measured()
    found = found._replace(settings={**found.settings, "partition.assignment.strategy": chosen})
    strategy = "KAFKA_PARTITION_ASSIGNMENT_STRATEGY"
    sticky, ranged = (workload(container=env(**{strategy: value})) for value in ("sticky", "range"))
    assert "partition.assignment.strategy" not in plan_of(found).settings
    said = "partition.assignment.strategy: range in hours (seen), sticky in the manifest, which counts."
    assert said in plan_of(found, sticky).findings
    assert not any("range in hours" in one for one in plan_of(found, ranged).findings)


def test_a_stop_that_was_measured_comes_after_the_hook_of_the_pods() -> None:
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "15"]}}}}
    found = measured({"stop_grace_ms": 2_000})
    assert plan_of(found).settings["stop_grace_ms"] == 2_000
    hooked = plan_of(found, workload(container=hook)).settings
    assert (hooked["pre_stop_ms"], hooked["stop_grace_ms"]) == (15_000, 2_000)


def test_a_protocol_that_refuses_settings_of_the_manifest_does_not_count() -> None:
    found = measured({"group.protocol": "consumer", "heartbeat.interval.ms": 1_000})
    assert plan_of(found).settings["group.protocol"] == "consumer"
    assert "heartbeat.interval.ms" not in plan_of(found).settings
    plan = plan_of(found, workload(container=env(KAFKA_SESSION_TIMEOUT_MS="30000")))
    assert plan.settings.get("group.protocol", "classic") == "classic"
    assert any("classic in the manifest, which counts" in one for one in plan.findings)


def test_many_topics_are_not_all_named() -> None:
    topics = {f"t{number}": 1 for number in range(40)}
    (said,) = plan_of(measured({"topic_partitions": topics}), record_rate=1, start_ms=1).measured
    assert said.endswith("t5: 1, 34 more} (seen)")


def test_what_kafka_streams_has_of_a_trace() -> None:
    found = measured({"topic_partitions": {"in": 6, "in-repartition": 8}, "group.protocol": "streams"})
    container = env(KAFKA_STREAMS_APPLICATION_ID="joins", KAFKA_STREAMS_SESSION_TIMEOUT_MS="30000")
    plan = plan_of(found, workload(container=container), state_bytes=0, record_rate=1, start_ms=1)
    assert plan.settings["partitions"] == 8
    assert "topic_partitions" not in plan.settings
    assert plan.settings["group.protocol"] == "streams", "Kafka Streams takes session.timeout.ms all the same"
