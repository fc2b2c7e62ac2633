"""Kafka settings in files that ConfigMaps hold: which of them a container reads, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout
from tests.storms.manifests.manifest_files import consumer_of, env, plan_of, workload


def config_map(**files: str) -> dict[str, Any]:
    """``files``: `application_yaml` is application.yaml."""
    data = {"-".join(name.split("__")).replace("_", "."): text for name, text in files.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def mounting(
    volume: dict[str, Any] | None = None, sub_path: str = "", variables: Mapping[str, str] = {}
) -> dict[str, Any]:
    """A Deployment whose container mounts the volume; by default all of the ConfigMap."""
    mount = {"name": "config", "mountPath": "/config"} | ({"subPath": sub_path} if sub_path else {})
    deployment = workload(container={"volumeMounts": [mount], **env(**variables)})
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
        "members_per_pod": 3, "partition.assignment.strategy": ["sticky", "range"],
        "session.timeout.ms": 6_000,
    }  # fmt: skip
    where = "ConfigMap c: application.yaml: spring.kafka.consumer"
    assert f"session.timeout.ms=6000 ({where}.properties.session.timeout.ms)" in plan.read
    assert f"group.id=orders ({where}.group-id)" in plan.read
    assert plan.consumer.unused == {}


def spring(consumer: str, listener: str = "{}") -> dict[str, str]:
    return {"application_yaml": f"spring: {{kafka: {{consumer: {{{consumer}}}, listener: {listener}}}}}"}


def smallrye(*lines: str) -> dict[str, str]:
    """KafkaCommitHandler: throttled, unless enable.auto.commit is true or commit-strategy says otherwise."""
    text = "\n".join(f"mp.messaging.incoming.orders.{line}" for line in ("group.id=g", *lines))
    return {"application_properties": text}


BY_HAND = "by hand after each batch, with a round trip"


@pytest.mark.parametrize(
    ("file", "settings", "assumed"),
    [
        (spring("enable-auto-commit: false"), {"enable.auto.commit": False, "commits": "batch"},
         f"commits=batch (enable.auto.commit=false: {BY_HAND})"),
        (spring("group-id: g"), {"commits": "batch"}, f"commits=batch (Spring's default: {BY_HAND})"),
        (spring("enable-auto-commit: true"), {"enable.auto.commit": True}, None),
        (spring("group-id: g", "{ack-mode: record}"), {"commits": "record"},
         "commits=record (ack-mode RECORD: by hand after each record, with a round trip)"),
        (spring("group-id: g", "{ackMode: BATCH}"), {"commits": "batch"},
         f"commits=batch (ack-mode BATCH: {BY_HAND})"),
        (spring("enable-auto-commit: false", "{ack-mode: manual}"),
         {"commits": "batch", "enable.auto.commit": False},
         "commits=batch (ack-mode MANUAL, if the listener acknowledges all that it has processed: "
         f"{BY_HAND})"),
        (spring("enable-auto-commit: false", "{ack-mode: time, ack-time: 2s}"),
         {"auto.commit.interval.ms": 2_000}, "auto.commit.interval.ms=2000 (ack-mode TIME commits so often)"),
        (spring("enable-auto-commit: true", "{ack-mode: record}"), {"enable.auto.commit": True}, None),
        (smallrye(), {"auto.commit.interval.ms": 5_000},
         "auto.commit.interval.ms=5000 (commit-strategy throttled commits so often)"),
        (smallrye("enable.auto.commit=false", "auto.commit.interval.ms=1000"),
         {"auto.commit.interval.ms": 1_000},
         "auto.commit.interval.ms=1000 (commit-strategy throttled commits so often)"),
        (smallrye("commit-strategy=latest"), {"commits": "batch"},
         f"commits=batch (commit-strategy latest: {BY_HAND})"),
        (smallrye("enable.auto.commit=true"), {"enable.auto.commit": True}, None),
    ],
)  # fmt: skip
def test_who_commits_and_when(file: dict[str, str], settings: dict[str, Any], assumed: str | None) -> None:
    plan = plan_of(config_map(**file), mounting())
    names = ("commits", "enable.auto.commit", "auto.commit.interval.ms")
    assert {name: plan.settings[name] for name in names if name in plan.settings} == settings
    assert [one for one in plan.assumed if "commit" in one] == ([assumed] if assumed else [])


@pytest.mark.parametrize(
    ("written", "setting"),
    [("earliest", "earliest"), ("Latest", "latest"), ("none", "none"), ("by_duration:P1D", None)],
)
def test_where_owners_begin(written: str, setting: str | None) -> None:
    plan = plan_of(workload(container=env(SPRING_KAFKA_CONSUMER_AUTO_OFFSET_RESET=written)))
    assert plan.settings.get("auto.offset.reset") == setting
    [said] = [one for one in plan.read if one.startswith("auto.offset.reset=")]
    assert ("not understood" in said) == (setting is None)


def test_a_share_group_commits_no_positions() -> None:
    springs = workload(
        container=env(SPRING_KAFKA_CONSUMER_GROUP_ID="g", SPRING_KAFKA_LISTENER_ACK_MODE="RECORD")
    )
    assert "commits" not in plan_of(springs, **{"group.protocol": "share"}).settings


def test_commits_that_are_given() -> None:
    plan = plan_of(workload(container=env(KAFKA_ENABLE_AUTO_COMMIT="false")), commits="never")
    assert plan.settings["commits"] == "never"
    assert not [one for one in plan.assumed if "commit" in one]


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
    assert read(plan_of(files, mounting(variables=variables)))["max.poll.records"] == 20
    variables["SPRING_APPLICATION_JSON"] = '{"spring.kafka.consumer": {"max-poll-records": 30}}'
    assert read(plan_of(files, mounting(variables=variables)))["max.poll.records"] == 30
    deployment = mounting(variables=variables)
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
    plan = plan_of(config_map(**PROFILES), mounting(variables={"SPRING_PROFILES_ACTIVE": active}))
    assert read(plan) == {"max.poll.records": records, "session.timeout.ms": session_timeout_ms}


@pytest.mark.parametrize("named", ["prod", "${STAGE:prod}"])
def test_a_file_names_the_active_profiles_of_its_own_documents_and_of_other_files(named: str) -> None:
    files = PROFILES | {"application_yaml": f"spring.profiles.active: {named}{PROFILES['application_yaml']}"}
    plan = plan_of(config_map(**files), mounting())
    assert read(plan) == {"max.poll.records": 20, "session.timeout.ms": 7_000}


@pytest.mark.parametrize(("active", "records"), [("", 20), ("dev", 20), ("prod", 10)])
def test_documents_for_all_profiles_but_one(active: str, records: int) -> None:
    """Without any the profile `default` is active (AbstractEnvironment)."""
    others = "spring.config.activate.on-profile: '!prod'\nkafka.max.poll.records: 20"
    text = f"kafka.max.poll.records: 10\n---\n{others}"
    plan = plan_of(config_map(application_yaml=text), mounting(variables={"SPRING_PROFILES_ACTIVE": active}))
    assert read(plan) == {"max.poll.records": records}


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
    plan = plan_of(config_map(application_yaml=text), mounting(variables={"POLL_MS": "60000"}))
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
    [unknown] = plan_of(mounting({}, variables={"SPRING_APPLICATION_JSON": '{"a"'})).unknown
    assert unknown.startswith("what env SPRING_APPLICATION_JSON: not YAML: ")


@pytest.mark.parametrize(
    ("name", "value", "each"),
    [
        ("SPRING_KAFKA_LISTENER_CONCURRENCY", "3", 3),
        ("SPRING_CLOUD_STREAM_BINDINGS_ORDERS_IN_0_CONSUMER_CONCURRENCY", "2", 2),
        ("mp.messaging.incoming.orders.concurrency", "2", 2),
        ("KAFKA_CONSUMER_THREADS", "4", 4),
        ("CONSUMER_CONCURRENCY", "4", 4),
        ("SPRING_KAFKA_LISTENER_CONCURRENCY", "1", 1),
        ("SPRING_KAFKA_LISTENER_CONCURRENCY", "1-3", 1),
        ("THREADS", "4", 1),
        ("HTTP_CONCURRENCY", "4", 1),
    ],
)
def test_several_consumers_of_a_pod(name: str, value: str, each: int) -> None:
    plan = plan_of(workload(container=env(**{name: value})))
    assert plan.settings["members"] == 4 * each
    assert plan.settings.get("members_per_pod", 1) == each
    assert any("--set members_per_pod=1" in one for one in plan.assumed) is (each == 4)


def test_members_counts_consumers_and_pods_are_those_of_the_manifest() -> None:
    container = env(SPRING_KAFKA_LISTENER_CONCURRENCY="3", KAFKA_GROUP_INSTANCE_ID="a")
    assert plan_of(workload(container=container), members=6).settings["members"] == 6
    assert plan_of(workload(container=container), members_per_pod=1).settings["members"] == 4
    with pytest.raises(InputError, match=r"each pod runs 3 consumers.*--set members=12 says 4 pods"):
        plan_of(workload(container=container), members=4)
    with pytest.raises(InputError, match=r"each with 3 consumers, which members counts.*--set members=30"):
        plan_rollout(consumer_of(workload(container=container, replicas=None)), {})
    # Spring numbers the ids of a container's consumers from 1 on
    rules = plan_of(workload(container=container, replicas=2)).settings["member_settings"]
    assert rules == [{"members": [number, number + 3], "instance": f"a-{number + 1}"} for number in range(3)]
    partition = {"rollingUpdate": {"partition": 4}}
    own = env(SPRING_KAFKA_LISTENER_CONCURRENCY="3")
    with pytest.raises(InputError, match="none of 4 pods has such an ordinal"):
        plan_of(workload("StatefulSet", container=own, updateStrategy=partition))


def test_consumers_without_a_partition_are_a_finding() -> None:
    plan = plan_of(workload(container=env(SPRING_KAFKA_LISTENER_CONCURRENCY="3")), partitions=10)
    assert "12 members (4 pods with 3 each) on 10 partitions: 2 own nothing." in plan.findings
