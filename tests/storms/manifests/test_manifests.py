"""Reading of manifests: workloads with Kubernetes' defaults, probes, Kafka settings, questions."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout
from groupstorm.storms.deployments.manifests.property_names import is_of_dotnet, property_named
from tests.storms.manifests.manifest_files import consumer_of, env, plan_of, workload


def test_kubernetes_defaults_of_a_deployment() -> None:
    settings = plan_of(workload()).settings
    expected = {
        "members": 4, "deployment": "deployment", "max_surge": "25%", "max_unavailable": "25%",
        "min_ready_ms": 0, "progress_deadline_ms": 600_000, "termination_grace_ms": 30_000,
        "ready_when": "runs", "ready_ms": 2_000,
    }  # fmt: skip
    assert {name: settings[name] for name in expected} == expected


def test_kubernetes_defaults_of_a_stateful_set() -> None:
    plan = plan_of(workload("StatefulSet"))
    assert plan.step == "rolling-restart"
    assert (plan.settings["max_surge"], plan.settings["max_unavailable"]) == (0, 1)
    assert plan.settings["deployment"] == "statefulset"


def rolling(**fields: Any) -> dict[str, Any]:
    return workload("StatefulSet", updateStrategy={"rollingUpdate": fields})


def test_a_stateful_set_that_replaces_no_pod_has_no_rollout() -> None:
    assert plan_of(rolling(partition=3)).settings["update_partition"] == 3
    for objects, settings in ((rolling(partition=4), {}), (rolling(partition=3), {"members": 3})):
        with pytest.raises(InputError, match=r"none of [34] pods has such an ordinal.*update_partition=0"):
            plan_of(objects, **settings)
    assert plan_of(rolling(partition=4), update_partition=0).settings["update_partition"] == 0


def test_several_missing_pods_of_a_stateful_set_need_a_feature_gate() -> None:
    def told(plan: Plan) -> bool:
        return any("MaxUnavailableStatefulSet" in sentence for sentence in plan.findings)

    assert told(plan_of(rolling(maxUnavailable="50%")))
    assert not told(plan_of(rolling(maxUnavailable="49%"))), "one of four pods"
    assert not told(plan_of(rolling(maxUnavailable=1)))
    assert not told(plan_of(rolling(maxUnavailable=2), max_unavailable=1))
    assert not told(plan_of(workload(strategy={"rollingUpdate": {"maxUnavailable": 2}})))


def test_what_a_deployment_says() -> None:
    plan = plan_of(
        workload(
            replicas=60,
            strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": "10%"}},
            minReadySeconds=20,
            progressDeadlineSeconds=120,
            pod={"terminationGracePeriodSeconds": 90},
            container={
                "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 15"]}}},
                "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5, "successThreshold": 2},
            },
        )
    )
    expected = {
        "members": 60, "max_surge": 3, "max_unavailable": "10%", "min_ready_ms": 20_000,
        "progress_deadline_ms": 120_000, "termination_grace_ms": 90_000, "pre_stop_ms": 15_000,
        "ready_when": "polls", "ready_ms": {"uniform": [5_000, 10_000]},
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert any("readinessProbe" in sentence for sentence in plan.assumed)


@pytest.mark.parametrize(
    ("hook", "grace_s", "hook_ms"),
    [
        ({"exec": {"command": ["sh", "-c", "sleep 5s; curl localhost/stop; sleep 2.5"]}}, 30, 8_000),
        ({"exec": {"command": ["sleep", "1m"]}}, 90, 60_000),
        ({"sleep": {"seconds": 15}}, 12, 15_000),
    ],
)
def test_hooks_that_sleep_are_read(hook: dict[str, Any], grace_s: int, hook_ms: int) -> None:
    pod = {"terminationGracePeriodSeconds": grace_s}
    settings = plan_of(workload(container={"lifecycle": {"preStop": hook}}, pod=pod)).settings
    assert (settings["pre_stop_ms"], settings["termination_grace_ms"]) == (hook_ms, grace_s * 1000)


def test_the_hook_of_a_sidecar_does_not_hold_the_consumer_up() -> None:
    sidecar = {"name": "proxy", "lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}
    found = workload(container=env(KAFKA_SESSION_TIMEOUT_MS="30000"))
    found["spec"]["template"]["spec"]["containers"].insert(0, sidecar)
    assert "pre_stop_ms" not in plan_of(found).settings


def test_a_probe_waits_for_its_initial_delay_if_that_is_longer_than_the_start() -> None:
    probe = {"readinessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 40, "periodSeconds": 10}}
    assert plan_of(workload(container=probe)).settings["ready_ms"] == {"uniform": [30_000, 40_000]}


def test_a_probe_that_looks_for_a_file_waits_for_partitions() -> None:
    probe = {"startupProbe": {"exec": {"command": ["sh", "-c", "test -f /tmp/health.txt"]}}}
    plan = plan_of(workload(container=probe))
    assert plan.settings["ready_when"] == "assigned"
    assert any("/tmp/health.txt" in sentence for sentence in plan.assumed)
    assert plan_of(workload(container=probe), ready_when="polls").settings["ready_when"] == "polls"


def test_recreate_is_a_step_of_its_own() -> None:
    assert plan_of(workload(strategy={"type": "Recreate"})).step == "recreate"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("KAFKA_SESSION_TIMEOUT_MS", "session.timeout.ms"),
        ("KAFKA_CONSUMER_SESSION_TIMEOUT_MS", "session.timeout.ms"),
        ("CONSUMER_MAX_POLL_INTERVAL_MS", "max.poll.interval.ms"),
        ("SESSION_TIMEOUT_MS", "session.timeout.ms"),
        ("session.timeout.ms", "session.timeout.ms"),
        ("SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS", "session.timeout.ms"),
        ("spring.kafka.properties.session.timeout.ms", "session.timeout.ms"),
        ("SPRING_KAFKA_CONSUMER_HEARTBEATINTERVAL", "heartbeat.interval.ms"),
        ("spring.kafka.consumer.heartbeat-interval", "heartbeat.interval.ms"),
        ("SPRING_KAFKA_CONSUMER_MAX_POLL_RECORDS", "max.poll.records"),
        ("KAFKA_GROUP_ID", "group.id"),
        ("KAFKA_CONSUMER_GROUP", "group.id"),
        ("SPRING_KAFKA_CONSUMER_GROUPID", "group.id"),
        ("KAFKA_TOPIC", "topic"),
        ("Kafka__SessionTimeoutMs", "session.timeout.ms"),
        ("Kafka.Consumer.GroupId", "group.id"),
        ("ConsumerConfig__MaxPollIntervalMs", "max.poll.interval.ms"),
        ("ConnectionStrings__SessionTimeoutMs", None),
        ("TOPIC", None),
        ("REQUEST_TIMEOUT_MS", None),
        ("DATABASE_SESSION_TIMEOUT_MS", None),
        ("PATH", None),
        ("", None),
    ],
)
def test_well_known_spellings(name: str, found: str | None) -> None:
    named = property_named(name)
    assert (named and named[0]) == found


@pytest.mark.parametrize("name", ["spring.kafka.consumer.maxPollRecords", "consumerGroupId", "Kafka.Topic"])
def test_others_write_capitals_too(name: str) -> None:
    found = property_named(name)
    assert found is not None
    assert not is_of_dotnet(name, found[0])


def test_names_and_values_of_dotnet_are_read() -> None:
    variables = {
        "Kafka__PartitionAssignmentStrategy": "CooperativeSticky",
        "Kafka__EnableAutoCommit": "false",
    }
    env = [{"name": name, "value": value} for name, value in variables.items()]
    plan = plan_of(workload(container={"env": env}))
    assert plan.settings["partition.assignment.strategy"] == ["cooperative-sticky"]
    assert plan.settings["enable.auto.commit"] is False
    assert plan.settings["client_profile"] == ["librdkafka"]
    why = "Kafka__PartitionAssignmentStrategy is a name of .NET's client, which wraps it"
    assert f"client_profile=librdkafka ({why})" in plan.assumed


def test_kafka_settings_of_env_config_map_and_arguments_with_their_places() -> None:
    config_map = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kafka"},
        "data": {"KAFKA_SESSION_TIMEOUT_MS": "30000", "OTHER": "x"},
    }  # fmt: skip
    strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    container = {
        "envFrom": [{"configMapRef": {"name": "kafka"}}],
        "env": [
            {"name": "SPRING_KAFKA_CONSUMER_HEARTBEAT_INTERVAL", "value": "5s"},
            {"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "KAFKA_MAX_POLL_INTERVAL_MS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "args": [f"--partition.assignment.strategy={strategy}"],
    }
    plan = plan_of(config_map, workload(container=container))
    expected = {
        "session.timeout.ms": 30_000, "heartbeat.interval.ms": 5_000, "group.instance.id": "podname",
        "partition.assignment.strategy": ["cooperative-sticky"],
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert "max.poll.interval.ms" not in plan.settings
    assert "session.timeout.ms=30000 (ConfigMap kafka: KAFKA_SESSION_TIMEOUT_MS)" in plan.read
    assert "heartbeat.interval.ms=5000 (env SPRING_KAFKA_CONSUMER_HEARTBEAT_INTERVAL)" in plan.read
    assert plan.unknown == ["max.poll.interval.ms (env KAFKA_MAX_POLL_INTERVAL_MS, from Secret s)"]
    assert plan.consumer.unused == {}


def test_values_of_other_files_are_named_unless_the_command_line_has_them() -> None:
    variables = [
        {"name": "KAFKA_SESSION_TIMEOUT_MS", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "KAFKA_GROUP_ID", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "KAFKA_MAX_POLL_RECORDS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    plan = plan_of(workload(container={"env": variables}), **{"max.poll.records": 50})
    assert plan.unknown == ["session.timeout.ms (env KAFKA_SESSION_TIMEOUT_MS, from ConfigMap c)"]


def test_a_consumer_group_is_rolled_out_as_one() -> None:
    """A setting that the classic protocol alone has stops Kafka's consumer, and is not simulated."""
    own = env(
        KAFKA_GROUP_PROTOCOL="CONSUMER", KAFKA_GROUP_REMOTE_ASSIGNOR="range", KAFKA_SESSION_TIMEOUT_MS="30000"
    )
    plan = plan_of(workload(container=own))
    assert (plan.settings["group.protocol"], plan.settings["group.remote.assignor"]) == ("consumer", "range")
    assert "session.timeout.ms" not in plan.settings
    [finding] = [one for one in plan.warnings if "ConfigException" in one]
    assert finding.startswith("session.timeout.ms=30000 and group.protocol=consumer: with both")
    assert "group.consumer.session.timeout.ms=45000 (the broker's default)" in plan.assumed
    assert not any(one.startswith("partition.assignment.strategy") for one in plan.assumed)
    classic = plan_of(workload(container=env(KAFKA_GROUP_REMOTE_ASSIGNOR="uniform")))
    assert any("group.protocol=classic: with both" in one for one in classic.warnings)
    assert "group.remote.assignor" not in classic.settings


@pytest.mark.parametrize("name", ["KAFKA_GROUP_PROTOCOL", "KAFKA_GROUP_REMOTE_ASSIGNOR"])
def test_a_protocol_that_there_is_not_is_not_used(name: str) -> None:
    plan = plan_of(workload(container=env(**{name: "mine"})))
    assert any(one.endswith(f"=mine (env {name}): not understood, so not used") for one in plan.read)


def test_the_command_line_goes_first() -> None:
    plan = plan_of(workload(container=env(KAFKA_SESSION_TIMEOUT_MS="30000")), **{"session.timeout.ms": 9_000})
    assert plan.settings["session.timeout.ms"] == 9_000
    assert not any("session.timeout.ms" in sentence for sentence in plan.read + plan.assumed)


@pytest.mark.parametrize(
    ("name", "topic_name", "group", "partitions"),
    [
        ("orders", None, "kafka.strimzi.io/v1beta2", 24),
        ("orders-topic", "orders", "kafka.strimzi.io/v1", 24),
        ("others", None, "kafka.strimzi.io/v1beta2", None),
        ("orders", "others", "kafka.strimzi.io/v1beta2", None),
        ("orders", None, "example.com/v1", None),
    ],
)
def test_partitions_of_the_topic_that_the_consumer_names(
    name: str, topic_name: str | None, group: str, partitions: int | None
) -> None:
    spec = {"partitions": 24} | ({"topicName": topic_name} if topic_name else {})
    topic = {"apiVersion": group, "kind": "KafkaTopic", "metadata": {"name": name}, "spec": spec}
    consumer = consumer_of(topic, workload(container=env(KAFKA_TOPIC="orders")))
    given = {"record_rate": 10, "start_ms": 10_000}
    if partitions is None:
        with pytest.raises(InputError, match="does not say partitions"):
            plan_rollout(consumer, given)
        return
    plan = plan_rollout(consumer, given)
    assert plan.settings["partitions"] == partitions
    assert f"partitions=24 (KafkaTopic {name})" in plan.read
    assert consumer.unused == {}
    assert plan_rollout(consumer, {**given, "partitions": 6}).settings["partitions"] == 6


def test_share_acknowledgement_mode_says_that_the_group_is_a_share_group() -> None:
    """Java's share consumers have no group.protocol."""
    plan = plan_of(workload(container=env(KAFKA_SHARE_ACKNOWLEDGEMENT_MODE="explicit")))
    assert plan.settings["group.protocol"] == "share"
    assert plan.settings["share.acknowledgement.mode"] == "explicit"
