"""Kafka settings in files that ConfigMaps hold: which of them a container reads, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.storms.deployments.manifests.plan import Plan
from tests.storms.manifests.manifest_files import plan_of, workload


def config_map(**files: str) -> dict[str, Any]:
    """``files``: `application_yaml` is application.yaml."""
    data = {"-".join(name.split("__")).replace("_", "."): text for name, text in files.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def mounting(
    volume: dict[str, Any] | None = None, sub_path: str = "", env: Mapping[str, str] = {}
) -> dict[str, Any]:
    """A Deployment whose container mounts the volume; by default all of the ConfigMap."""
    mount = {"name": "config", "mountPath": "/config"} | ({"subPath": sub_path} if sub_path else {})
    environment = [{"name": name, "value": value} for name, value in env.items()]
    deployment = workload(container={"volumeMounts": [mount], "env": environment})
    source = {"configMap": {"name": "c"}} if volume is None else volume
    deployment["spec"]["template"]["spec"]["volumes"] = [{"name": "config", **source}]
    return deployment


def read(plan: Plan) -> dict[str, Any]:
    """The settings that come from the manifests' Kafka properties."""
    names = {text.partition("=")[0] for text in plan.read}
    return {name: plan.settings[name] for name in sorted(names & plan.settings.keys())}


SPRING = """
spring:
  kafka:
    properties:
      session.timeout.ms: 9000
      max.poll.records: 7
    consumer:
      group-id: orders
      max-poll-records: 50
      enable-auto-commit: false
      heartbeat-interval: 2s
      properties:
        "[session.timeout.ms]": 6000
        partition.assignment.strategy:
          - org.apache.kafka.clients.consumer.StickyAssignor
          - org.apache.kafka.clients.consumer.RangeAssignor
    listener:
      concurrency: 3
"""


def test_springs_yaml() -> None:
    """The consumer's properties go before Spring's own names, and these before all clients' properties."""
    plan = plan_of(config_map(application_yaml=SPRING), mounting())
    assert read(plan) == {
        "enable.auto.commit": False, "heartbeat.interval.ms": 2_000, "max.poll.records": 50,
        "partition.assignment.strategy": ["sticky", "range"], "session.timeout.ms": 6_000,
    }  # fmt: skip
    where = "ConfigMap c: application.yaml: spring.kafka.consumer"
    assert f"session.timeout.ms=6000 ({where}.properties.session.timeout.ms)" in plan.read
    assert f"group.id=orders ({where}.group-id)" in plan.read
    assert plan.consumer.unused == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("consumer_properties", "# a client's own file\nsession.timeout.ms = 6000\nmax.poll.records: 50\n"),
        ("settings_json", '{"kafka": {"consumer": {"session.timeout.ms": 6000, "max_poll_records": "50"}}}'),
        ("service_yml", "kafka: {session_timeout_ms: 6000}\nconsumer: {max-poll-records: 50}\n"),
    ],
)
def test_files_of_other_applications(name: str, text: str) -> None:
    plan = plan_of(config_map(**{name: text}), mounting())
    assert read(plan) == {"max.poll.records": 50, "session.timeout.ms": 6_000}


def test_the_environment_and_arguments_go_before_files() -> None:
    files = config_map(application_yaml=SPRING)
    variables = {"SPRING_KAFKA_CONSUMER_MAX_POLL_RECORDS": "20"}
    assert read(plan_of(files, mounting(env=variables)))["max.poll.records"] == 20
    variables["SPRING_APPLICATION_JSON"] = '{"spring.kafka.consumer": {"max-poll-records": 30}}'
    assert read(plan_of(files, mounting(env=variables)))["max.poll.records"] == 30
    deployment = mounting(env=variables)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["args"] = ["--spring.kafka.consumer.max-poll-records=40"]
    assert read(plan_of(files, deployment))["max.poll.records"] == 40


@pytest.mark.parametrize(
    ("volume", "sub_path", "is_read"),
    [
        ({"configMap": {"name": "c"}}, "", True),
        ({"configMap": {"name": "c"}}, "a.yaml", True),
        ({"configMap": {"name": "c"}}, "b.yaml", False),
        ({"configMap": {"name": "c", "items": [{"key": "a.yaml", "path": "x.yaml"}]}}, "", True),
        ({"configMap": {"name": "c", "items": [{"key": "a.yaml", "path": "x.yaml"}]}}, "x.yaml", True),
        ({"configMap": {"name": "c", "items": [{"key": "b", "path": "x.yaml"}]}}, "", False),
        ({"configMap": {"name": "c", "items": [{"key": "a.yaml", "path": "x.txt"}]}}, "", False),
        ({"projected": {"sources": [{"configMap": {"name": "c"}}]}}, "", True),
        ({"name": "other", "configMap": {"name": "c"}}, "", False),
    ],
)
def test_only_files_that_the_container_mounts_count(
    volume: dict[str, Any], sub_path: str, is_read: bool
) -> None:
    plan = plan_of(config_map(a_yaml="session.timeout.ms: 6000"), mounting(volume, sub_path))
    assert read(plan) == ({"session.timeout.ms": 6_000} if is_read else {})
    assert plan.unknown == []


PROFILES = {
    "application__prod_yaml": "kafka.session.timeout.ms: 7000",
    "application_yaml": """
kafka: {session.timeout.ms: 6000, max.poll.records: 10}
---
spring.config.activate.on-profile: test, prod
kafka: {max.poll.records: 20}
---
spring: {config: {activate: {on-profile: dev}}}
kafka: {max.poll.records: 30}
""",
}


@pytest.mark.parametrize(
    ("active", "session_timeout_ms", "records"),
    [("", 6_000, 10), ("prod", 7_000, 20), ("other, dev", 6_000, 30)],
)
def test_files_and_documents_of_springs_profiles(active: str, session_timeout_ms: int, records: int) -> None:
    plan = plan_of(config_map(**PROFILES), mounting(env={"SPRING_PROFILES_ACTIVE": active}))
    assert read(plan) == {"max.poll.records": records, "session.timeout.ms": session_timeout_ms}


def test_a_file_names_the_active_profiles() -> None:
    files = PROFILES | {"application_yaml": "spring.profiles.active: prod\nkafka: {session.timeout.ms: 6000}"}
    assert read(plan_of(config_map(**files), mounting())) == {"session.timeout.ms": 7_000}


def test_placeholders_are_filled_in() -> None:
    """From the environment, from the files, from their own default; one without any is not known."""
    text = """
kafka:
  session.timeout.ms: ${SESSION_TIMEOUT:6000}
  max.poll.interval.ms: ${POLL_MS}
  max.poll.records: ${app.records:${OTHER:8}}
  heartbeat.interval.ms: ${app.beat}
  request.timeout.ms: ${LOOP}
  group.instance.id: billing-${HOSTNAME}
  auto.commit.interval.ms: ${NOWHERE}
app: {beat: 2000}
LOOP: ${LOOP}
"""
    plan = plan_of(config_map(application_yaml=text), mounting(env={"POLL_MS": "60000"}))
    assert read(plan) == {
        "group.instance.id": "podname", "heartbeat.interval.ms": 2_000, "max.poll.interval.ms": 60_000,
        "max.poll.records": 8, "session.timeout.ms": 6_000,
    }  # fmt: skip
    place = "ConfigMap c: application.yaml: kafka"
    assert plan.unknown == [
        f"request.timeout.ms ({place}.request.timeout.ms)",
        f"auto.commit.interval.ms ({place}.auto.commit.interval.ms)",
    ]


def test_what_cannot_be_read_is_said() -> None:
    elsewhere = mounting({"configMap": {"name": "other"}})
    assert plan_of(elsewhere).unknown == ["what the files of ConfigMap other set"]
    certificates = {"configMap": {"name": "other", "items": [{"key": "k", "path": "ca.crt"}]}}
    assert plan_of(mounting(certificates)).unknown == []
    [unknown] = plan_of(config_map(application_yaml="a: b: c"), mounting()).unknown
    assert unknown.startswith("what ConfigMap c: application.yaml: not YAML: mapping values")
    [unknown] = plan_of(mounting({}, env={"SPRING_APPLICATION_JSON": '{"a"'})).unknown
    assert unknown.startswith("what env SPRING_APPLICATION_JSON: not YAML: ")


@pytest.mark.parametrize(
    ("kind", "spec", "options"),
    [
        ("Deployment", {}, "--set members=12 --set max_surge=3 --set max_unavailable=3."),
        ("Deployment", {"strategy": {"type": "Recreate"}}, "with --set members=12."),
        ("StatefulSet", {}, "--set members=12 --set max_surge=0 --set max_unavailable=3."),
    ],
)
def test_several_consumers_of_a_pod_are_a_finding(kind: str, spec: dict[str, Any], options: str) -> None:
    env = [{"name": "SPRING_KAFKA_LISTENER_CONCURRENCY", "value": "3"}]
    deployment = workload(kind, container={"env": env}, **spec)
    where = "(env SPRING_KAFKA_LISTENER_CONCURRENCY)"
    [said] = [one for one in plan_of(deployment).findings if "consumers" in one]
    assert said.startswith(f"Each pod runs 3 consumers {where}")
    assert said.endswith(options)
    assert not any("consumers" in one for one in plan_of(deployment, members=12).findings)
    env[0]["value"] = "1"
    assert not any("consumers" in one for one in plan_of(deployment).findings)
