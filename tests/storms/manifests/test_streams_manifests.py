"""Manifests of Kafka Streams applications are known by their properties, and asked about their state."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from groupstorm.problems import InputError
from groupstorm.storms.deployments.alternatives import alternatives_to
from groupstorm.storms.scenario.files import parse
from tests.storms.manifests.manifest_files import env, plan_of, workload

VOLUME = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SPRING_KAFKA_STREAMS_APPLICATION_ID", "joins"),
        ("SPRING_KAFKA_STREAMS_PROPERTIES_NUM_STREAM_THREADS", "4"),
        ("SPRING_CLOUD_STREAM_KAFKA_STREAMS_BINDER_APPLICATION_ID", "joins"),
        ("QUARKUS_KAFKA_STREAMS_APPLICATION_ID", "joins"),
        ("KAFKA_STREAMS_NUM_STANDBY_REPLICAS", "1"),
        ("KSQL_KSQL_SERVICE_ID", "joins"),
        ("KSQL_KSQL_STREAMS_NUM_STREAM_THREADS", "4"),
        ("NUM_STREAM_THREADS", "4"),
        ("TELEMETRY_STREAM_NUM_STREAM_THREADS", "4"),
        ("KAFKA_GROUP_PROTOCOL", "streams"),
    ],
)
def test_properties_that_only_kafka_streams_has(name: str, value: str) -> None:
    plan = plan_of(workload(container=env(**{name: value})), state_bytes=10**9)
    assert plan.settings["application"] == "streams"
    assert any(name in sentence for sentence in plan.read)


@pytest.mark.parametrize(
    "name",
    [
        "APPLICATION_ID",
        "SPRING_APPLICATION_ID",
        "EVENT_STREAMS_APPLICATION_ID",
        "KAFKA_GROUP_ID",
        "STREAM_THREADS",
    ],
)
def test_names_that_any_application_may_have(name: str) -> None:
    assert "application" not in plan_of(workload(container=env(**{name: "joins"}))).settings


def test_what_streams_sets_itself_is_not_used() -> None:
    given = {"KAFKA_STREAMS_APPLICATION_ID": "joins", "KAFKA_ENABLE_AUTO_COMMIT": "true"}
    plan = plan_of(workload(container=env(**given)), state_bytes=10**9)
    assert plan.unused == ["enable.auto.commit (env KAFKA_ENABLE_AUTO_COMMIT: Kafka Streams sets it itself)"]
    as_consumer = plan_of(workload(container=env(KAFKA_NUM_STREAM_THREADS="4")), application="consumer")
    assert "num.stream.threads" not in as_consumer.settings
    assert "of Kafka Streams, and application is consumer" in as_consumer.unused[0]


def test_groups_beside_the_application_are_named() -> None:
    """A Spring application may have listeners, too; ksqlDB has a group for each query."""
    both = env(SPRING_KAFKA_STREAMS_APPLICATION_ID="joins", SPRING_KAFKA_CONSUMER_GROUP_ID="mails")
    found = plan_of(workload(container=both), state_bytes=10**9).findings
    assert any(sentence.startswith("SPRING_KAFKA_CONSUMER_GROUP_ID=mails: the figures") for sentence in found)
    ksql = plan_of(workload(container=env(KSQL_KSQL_SERVICE_ID="q")), state_bytes=10**9)
    assert any("one query of ksqlDB" in sentence for sentence in ksql.assumed)


def test_state_is_asked_for_and_none_makes_tasks_stateless() -> None:
    objects = workload(container=env(NUM_STREAM_THREADS="2"))
    with pytest.raises(
        InputError, match=r"state_bytes .state of a task of Kafka Streams; 0 if it keeps none"
    ):
        plan_of(objects)
    assert plan_of(objects, state_bytes=0).settings["stateless_topics"] == 1
    assert "stateless_topics" not in plan_of(objects, state_bytes=1).settings


def test_state_on_disks_that_go_with_their_pod_is_said() -> None:
    container = env(NUM_STREAM_THREADS="2")
    bare = plan_of(workload("StatefulSet", container=container), state_bytes=10**9)
    assert any("no volumeClaimTemplates" in sentence for sentence in bare.findings)
    assert bare.settings["state_outlasts_process"] is False
    kept = plan_of(
        workload("StatefulSet", container=container, volumeClaimTemplates=VOLUME), state_bytes=10**9
    )
    assert any("a pod finds the state" in sentence for sentence in kept.assumed)
    deployment = plan_of(workload(container=container), state_bytes=10**9)
    assert any("a new pod begins without state" in sentence for sentence in deployment.assumed)


def offered(**variables: str) -> list[str]:
    plan = plan_of(workload(container=env(**variables)), state_bytes=10**9)
    resolved = parse(yaml.safe_dump(plan.scenario()), "yaml", "rollout.yaml").resolve(None, None, {})
    return [one.name for one in alternatives_to(plan, resolved.settings)]


def test_alternatives_of_kafka_streams() -> None:
    plain = offered(NUM_STREAM_THREADS="2")
    assert plain[:4] == ["standbys", "leave-on-close", "static-members", "streams-group"]
    assert not {"cooperative-sticky", "kip-848"} & {*plain}
    assert "standbys" not in offered(NUM_STANDBY_REPLICAS="1")
    # probing rebalances and warm-ups are nothing that a streams group has
    assert "streams-group" not in offered(KAFKA_STREAMS_MAX_WARMUP_REPLICAS="4")
    assert "streams-group" in offered(KSQL_KSQL_SERVICE_ID="q", KSQL_KSQL_STREAMS_SESSION_TIMEOUT_MS="30000")
    assert "leave-on-close" not in offered(KAFKA_GROUP_PROTOCOL="streams")


def test_names_that_spring_passes_by_set_nothing_and_say_kafka_streams_all_the_same() -> None:
    container = env(SPRING_KAFKA_STREAMS_NUM_STREAM_THREADS="4")
    plan = plan_of(workload(container=container), state_bytes=10**9)
    assert plan.settings["application"] == "streams"
    assert "num.stream.threads" not in plan.settings
    assert "spring.kafka.streams.properties.num.stream.threads is its name" in plan.unused[0]


def test_springs_listeners_and_its_kafka_streams_have_settings_of_their_own() -> None:
    both = env(
        SPRING_KAFKA_STREAMS_APPLICATION_ID="joins",
        SPRING_KAFKA_STREAMS_PROPERTIES_SESSION_TIMEOUT_MS="20000",
        SPRING_KAFKA_PROPERTIES_SESSION_TIMEOUT_MS="30000",
        SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS="10000",
        SPRING_KAFKA_CONSUMER_MAX_POLL_RECORDS="7",
        SPRING_KAFKA_LISTENER_CONCURRENCY="3",
    )
    streams = plan_of(workload(container=both), state_bytes=10**9)
    assert streams.settings["session.timeout.ms"] == 20_000
    assert "max.poll.records" not in streams.settings
    assert not any("members_per_pod" in sentence for sentence in streams.read)
    assert any(
        "LISTENER_CONCURRENCY: of consumers beside the Kafka Streams" in sentence
        for sentence in streams.unused
    )
    listeners = plan_of(workload(container=both), application="consumer")
    assert listeners.settings["session.timeout.ms"] == 10_000
    assert listeners.settings["members_per_pod"] == 3


def configured(name: str, text: str) -> list[dict[str, Any]]:
    """A workload with a mounted file, and the ConfigMap that holds it."""
    objects = workload(
        container={"volumeMounts": [{"name": "c"}]},
        pod={"volumes": [{"name": "c", "configMap": {"name": "settings"}}]},
    )
    return [objects, {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {name: text}}]


def test_a_file_of_kafka_streams_own_properties() -> None:
    text = "application.id=words\nbootstrap.servers=k:9092\ninternal.leave.group.on.close=true\n"
    plan = plan_of(*configured("streams.properties", text), state_bytes=10**9)
    assert plan.settings["application"] == "streams"
    assert plan.settings["leave_on_close"] is True
    assert plan.read[0] == "application.id=words (ConfigMap settings: streams.properties: application.id)"
    other = plan_of(*configured("application.yaml", "application: {id: words}"))
    assert "application" not in other.settings


def test_words_joined_by_dashes() -> None:
    text = "app: {streams: {num-stream-threads: 3, num-standby-replicas: 1}}"
    settings = plan_of(*configured("application.yaml", text), state_bytes=10**9).settings
    assert (settings["num.stream.threads"], settings["num.standby.replicas"]) == (3, 1)


def test_what_a_streams_group_does_not_have() -> None:
    """Kafka Streams starts with session.timeout.ms, and from 4.4 on with group.instance.id."""
    given = {"KAFKA_GROUP_PROTOCOL": "streams", "KAFKA_SESSION_TIMEOUT_MS": "30000"}
    plan = plan_of(workload(container=env(**given)), state_bytes=10**9)
    assert "session.timeout.ms" not in plan.settings
    assert not plan.warnings
    assert any(
        "with both, Kafka's consumer starts, and the first has no effect" in one for one in plan.findings
    )
    named = {"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    static = {"env": [*env(**given)["env"], named]}
    [warning] = plan_of(workload(container=static), state_bytes=10**9).warnings
    assert warning.startswith("group.instance.id and group.protocol=streams: it needs Kafka Streams 4.4")
