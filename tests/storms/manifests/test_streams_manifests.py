"""Manifests of Kafka Streams applications are known by their properties, and asked about their state."""

from __future__ import annotations

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
        ("KAFKA_GROUP_PROTOCOL", "streams"),
    ],
)
def test_properties_that_only_kafka_streams_has(name: str, value: str) -> None:
    plan = plan_of(workload(container=env(**{name: value})), state_bytes=10**9)
    assert plan.settings["application"] == "streams"
    assert any(name in sentence for sentence in plan.read)


@pytest.mark.parametrize(
    "name", ["APPLICATION_ID", "SPRING_APPLICATION_ID", "KAFKA_GROUP_ID", "STREAM_THREADS"]
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
    assert "leave-on-close" not in offered(KAFKA_GROUP_PROTOCOL="streams")
