"""What is read from manifests: workloads with Kubernetes' defaults, probes, Kafka settings, questions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.choice import choose_consumer
from groupstorm.storms.deployments.manifests.kafka_environment import property_named
from groupstorm.storms.deployments.manifests.objects import read_objects
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout
from tests.storms.manifests.manifest_files import GIVEN, consumer_of, plan_of, text_of, workload


def env(**variables: object) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value} for name, value in variables.items()]}


def test_kubernetes_defaults_of_a_deployment() -> None:
    settings = plan_of(workload()).settings
    expected = {
        "members": 4, "deployment": "deployment", "max_surge": "25%", "max_unavailable": "25%",
        "min_ready_ms": 0, "progress_deadline_ms": 600_000, "termination_grace_ms": 30_000,
        "stop_grace_ms": 500, "ready_when": "runs", "ready_ms": 2_000,
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

    assert told(plan_of(rolling(maxUnavailable="34%")))
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
        "progress_deadline_ms": 120_000, "termination_grace_ms": 90_000, "stop_grace_ms": 15_500,
        "ready_when": "polls", "ready_ms": {"uniform": [5_000, 10_000]},
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert any("readinessProbe" in sentence for sentence in plan.assumed)


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
    """What the classic protocol alone has stops Kafka's consumer, and is not simulated."""
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


POD_NAME = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
INSTANCE = "KAFKA_GROUP_INSTANCE_ID"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def of_config_map(name: str, key: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"configMapKeyRef": {"name": "kafka", "key": key}}}


@pytest.mark.parametrize(
    ("variables", "instance"),
    [
        ([POD_NAME, {"name": INSTANCE, "value": "$(POD_NAME)"}], None),
        ([POD_NAME, {"name": INSTANCE, "value": "orders-$(POD_NAME)"}], None),
        ([{"name": "ME", "value": "$(FROM_MAP)-1"}, {"name": INSTANCE, "value": "$(ME)"}], "x-1"),
        # a variable that is defined later, or not at all; the kubelet does not know HOSTNAME
        ([{"name": INSTANCE, "value": "$(POD_NAME)"}, POD_NAME], "$(POD_NAME)"),
        ([{"name": INSTANCE, "value": "$(HOSTNAME)"}], "$(HOSTNAME)"),
        ([POD_NAME, {"name": INSTANCE, "value": "$$(POD_NAME)"}], "$(POD_NAME)"),
        # what a ConfigMap holds stays literal, also if a value refers to it
        ([POD_NAME, of_config_map(INSTANCE, "ID")], "$(POD_NAME)"),
        ([POD_NAME, {"name": INSTANCE, "value": "a-$(ID)"}], "a-$(POD_NAME)"),
        # Spring and shells put these in
        ([{"name": INSTANCE, "value": "${HOSTNAME}"}], None),
        ([of_config_map(INSTANCE, "SPRING")], None),
    ],
)
def test_variables_are_put_in_where_kubernetes_puts_them_in(
    variables: list[dict[str, Any]], instance: str | None
) -> None:
    """kubernetes#69113: only in env[].value, and only for variables that are defined before."""
    container = {"envFrom": [{"configMapRef": {"name": "kafka"}}], "env": variables}
    held = config_map("kafka", ID="$(POD_NAME)", FROM_MAP="x", SPRING="${POD_NAME}")
    plan = plan_of(workload("StatefulSet", container=container), held)
    assert plan.settings.get("group.instance.id") == (None if instance else "podname")
    rules = [{"members": [0, 1, 2, 3], "instance": instance}] if instance else None
    assert plan.settings.get("member_settings") == rules
    assert plan.settings.get("restart_failed", False) is bool(instance)
    assert len(plan.alarms) == bool(instance)


def test_an_instance_id_that_stays_literal_is_said_first_with_its_mend() -> None:
    container = {"envFrom": [{"configMapRef": {"name": "kafka"}}], "env": [POD_NAME]}
    plan = plan_of(workload(container=container), config_map("kafka", KAFKA_GROUP_INSTANCE_ID="$(POD_NAME)"))
    [alarm] = plan.alarms
    assert alarm.startswith(
        "All pods have the same group.instance.id: $(POD_NAME) (ConfigMap kafka: KAFKA_GROUP_INSTANCE_ID)."
    )
    assert "kubernetes#69113" in alarm
    assert alarm.endswith(
        "Instead:\nenv:  # of container app\n"
        "  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
        '  - {name: KAFKA_GROUP_INSTANCE_ID, value: "$(POD_NAME)"}'
    )


def test_of_several_containers_the_one_with_kafka_settings_is_the_consumer() -> None:
    """A proxy that is ready says nothing about the consumer beside it, which has no probe."""
    proxy = {"name": "proxy", "readinessProbe": {"httpGet": {"port": 15021}}}
    consumer = {"name": "worker", "env": [{"name": "KAFKA_GROUP_ID", "value": "orders"}]}
    plan = plan_of(workload(pod={"containers": [proxy, consumer]}))
    assert (plan.consumer.workload.container, plan.settings["ready_when"]) == ("worker", "runs")
    assert plan.warnings == []
    neither = plan_of(workload(pod={"containers": [{"name": "worker"}, proxy]}))
    assert (neither.consumer.workload.container, neither.settings["ready_when"]) == ("worker", "polls")


@pytest.mark.parametrize(("name", "session_ms", "other"), [("pay", 10_000, "b"), ("b", 60_000, "a")])
def test_of_two_consumers_in_a_pod_one_is_told_and_the_other_named(
    name: str, session_ms: int, other: str
) -> None:
    """That of the workload's name, or the first one."""
    session = "KAFKA_SESSION_TIMEOUT_MS"
    containers = [
        {"name": "a", "env": [{"name": session, "value": "10000"}]},
        {"name": "b", "env": [{"name": session, "value": "60000"}], "readinessProbe": {"httpGet": {}}},
    ]
    plan = plan_of(workload(name=name, pod={"containers": containers}))
    chosen = "b" if name == "b" else "a"
    assert (plan.consumer.workload.container, plan.settings["session.timeout.ms"]) == (chosen, session_ms)
    assert plan.settings["ready_when"] == ("polls" if name == "b" else "runs")
    [warning] = plan.warnings
    assert warning.startswith(f"The figures are of container {chosen} alone: beside it {other} with")


def test_variables_of_a_secret_may_be_any() -> None:
    """The value of $(ID) is not known, so nothing is said of the pods' ids."""
    container = {
        "envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "elsewhere"}}],
        "env": [{"name": INSTANCE, "value": "$(ID)"}],
    }
    plan = plan_of(workload(container=container))
    assert not plan.alarms
    assert plan.unknown == [
        "what Secret s sets (envFrom)", "what ConfigMap elsewhere sets (envFrom)",
        f"group.instance.id (env {INSTANCE})",
    ]  # fmt: skip


def test_fields_that_are_not_used_are_named_with_the_reason() -> None:
    container = {
        "livenessProbe": {}, "resources": {"limits": {"cpu": 1}}, "readinessProbe": {}, "startupProbe": {},
        "lifecycle": {"preStop": {"httpGet": {"path": "/stop"}}, "postStart": {"sleep": {"seconds": 1}}},
        **env(KAFKA_CONSUMER_FETCH_MIN_BYTES="1", SPRING_KAFKA_BOOTSTRAP_SERVERS="b",
              SPRING_KAFKA_SSL_KEY="k"),
    }  # fmt: skip
    pod = {"affinity": {"a": 1}, "initContainers": [{"name": "i"}]}
    plan = plan_of(workload(container=container, pod=pod, paused=True))
    assert [one.partition(" (")[0] for one in plan.unused] == [
        "paused", "initContainers", "affinity", "resources", "lifecycle.postStart",
        "lifecycle.preStop.httpGet",
        "startupProbe", "KAFKA_CONSUMER_FETCH_MIN_BYTES",
    ]  # fmt: skip
    assert all(one.endswith(")") for one in plan.unused)
    assert plan_of(workload(paused=False)).unused == []


def test_arguments_take_the_variables_of_the_container() -> None:
    own = {"env": [POD_NAME], "args": ["--group.instance.id=$(POD_NAME)", "--max.poll.records=$(N)"]}
    plan = plan_of(workload(container=own))
    assert plan.settings["group.instance.id"] == "podname"
    [alarm] = plan_of(workload(container={"args": ["--group.instance.id=$(POD_NAME)"]})).alarms
    assert alarm.endswith("# and $(POD_NAME) in args: group.instance.id")
    shell = {"command": ["sh", "-c", "java -Dgroup.instance.id=$(hostname) -jar x.jar"]}
    assert plan_of(workload(container=shell)).settings["group.instance.id"] == "podname"


def test_a_file_is_not_expanded_by_kubernetes() -> None:
    container = {"env": [POD_NAME], "volumeMounts": [{"name": "v", "mountPath": "/config"}]}
    text = "spring.kafka.consumer.properties.group.instance.id: $(POD_NAME)"
    files = config_map("files", **{"application.yaml": text})
    pod = {"volumes": [{"name": "v", "configMap": {"name": "files"}}]}
    [alarm] = plan_of(workload(container=container, pod=pod), files).alarms
    assert "and ${POD_NAME} in ConfigMap files: application.yaml: spring.kafka" in alarm


def test_one_instance_id_for_all_pods_is_an_alarm() -> None:
    plan = plan_of(workload(container=env(KAFKA_GROUP_INSTANCE_ID="orders-1")))
    assert "group.instance.id" not in plan.settings
    [alarm] = plan.alarms
    assert "FENCED_INSTANCE_ID" in alarm
    assert "69113" not in alarm
    given = plan_of(workload(container=env(KAFKA_GROUP_INSTANCE_ID="x")), **{"group.instance.id": "podname"})
    assert not given.alarms


def test_it_asks_for_everything_that_is_missing_at_once() -> None:
    with pytest.raises(InputError) as asked:
        plan_rollout(consumer_of(workload(replicas=None)), {})
    for option in ("--set members=", "partitions=", "record_rate=", "start_ms="):
        assert option in str(asked.value)


@pytest.mark.parametrize(
    ("objects", "wanted", "message"),
    [
        ([workload(name="a"), workload(name="b")], None, r"several workloads \(a, b\): .*--workload NAME"),
        ([workload(), workload("StatefulSet")], None, r"\(Deployment/orders, StatefulSet/orders\)"),
        ([workload(name="a"), workload(name="b")], "c", "--workload c: no such workload: m.yaml has a, b"),
        ([{"kind": "Service", "metadata": {"name": "s"}}], None, "no Deployment and no StatefulSet in it"),
        ([workload(replicas="four")], None, r"\(Deployment orders\).spec.replicas: 'four': expected a whole"),
        ([workload(replicas=-1)], None, "spec.replicas: -1"),
        ([workload(strategy={"rollingUpdate": {"maxSurge": "many"}})], None, "maxSurge: 'many': expected"),
        ([workload(strategy={"type": "Sometimes"})], None, "type: 'Sometimes': expected RollingUpdate or"),
        ([workload(pod={"containers": []})], None, "containers: missing"),
        ([workload(pod={"containers": "app"})], None, "containers: 'app': expected a list"),
        ([{"kind": "Deployment", "metadata": 7}], None, "metadata: 7: expected names with values"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(objects: list[Any], wanted: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as problem:
        consumer_of(*objects, wanted=wanted)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("kind", "group", "target", "command"),
    [
        (
            "ScaledObject", "keda.sh/v1alpha1", {"name": "orders"},
            "kubectl get deployment/orders scaledobject/s -n shop",
        ),
        (
            "HorizontalPodAutoscaler", "autoscaling/v2", {"kind": "StatefulSet", "name": "pay"},
            "kubectl get statefulset/pay horizontalpodautoscaler/s -n shop",
        ),
    ],
)  # fmt: skip
def test_an_autoscaler_alone_names_what_to_add(
    kind: str, group: str, target: dict[str, str], command: str
) -> None:
    metadata = {"name": "s", "namespace": "shop"}
    alone = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": {"scaleTargetRef": target}}
    with pytest.raises(InputError) as refused:
        consumer_of(alone)
    said = (
        f"{kind} s scales {target.get('kind', 'Deployment')} {target['name']}, which is not in it: add that"
    )
    assert said in str(refused.value)
    assert command in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "KafkaConnect",
            {"replicas": 3, "config": {"group.id": "cdc", "scheduled.rebalance.max.delay.ms": 60_000}},
            ("3 workers of Kafka Connect, group.id cdc", "up to scheduled.rebalance.max.delay.ms (60.0 s)"),
        ),
        ("KafkaConnect", {}, ("1 worker of", "group.id connect-cluster:", "ms (300 s)")),
        ("KafkaConnect", {"config": {"connect.protocol": "eager"}}, ("stops the tasks of all workers",)),
        (
            "KafkaMirrorMaker2",
            {"connectCluster": "b", "clusters": [{}, {"alias": "b", "config": {"group.id": "mm"}}]},
            ("group.id mm:",),
        ),
        ("KafkaMirrorMaker2", {"target": {"groupId": "mm2", "config": {}}}, ("group.id mm2:",)),
    ],
)  # fmt: skip
def test_what_can_be_said_of_kafka_connect(
    kind: str, spec: dict[str, Any], expected: tuple[str, ...]
) -> None:
    cluster = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "c"},
        "spec": spec,
    }
    with pytest.raises(InputError, match=f"{kind} c: ") as refused:
        consumer_of(cluster)
    for words in (*expected, "not emulated"):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        'kind: Deployment\nmetadata:\n  name: {{ include "orders.fullname" . }}',
        "kind: Deployment\nmetadata: {name: '{{ .Release.Name }}'}",
        "kind: {{kind}}",
    ],
)
def test_a_template_is_rendered_first(text: str) -> None:
    with pytest.raises(InputError, match=r"`helm template CHART \| groupstorm rollout -`"):
        read_objects(text, "m.yaml")


def test_braces_of_other_programs_are_no_template() -> None:
    alert = {"kind": "PrometheusRule", "metadata": {"name": "a"}, "spec": {"text": "on {{ $labels.pod }}"}}
    assert len(read_objects(text_of(alert, workload()), "m.yaml")) == 2


def test_the_consumer_is_the_one_with_kafka_settings_or_a_kafka_scaler() -> None:
    web = workload(name="web")
    with_settings = workload(name="worker", container=env(KAFKA_GROUP_ID="g"))
    assert consumer_of(web, with_settings).workload.name == "worker"
    scaler = {
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "s"},
        "spec": {"scaleTargetRef": {"name": "plain"}, "triggers": [{"type": "kafka"}]},
    }  # fmt: skip
    chosen = consumer_of(web, workload(name="plain"), scaler)
    assert chosen.workload.name == "plain"
    assert chosen.autoscaler is not None
    assert chosen.unused == {"Deployment": 1}


def test_items_of_a_list_and_empty_documents() -> None:
    text = (
        "---\n---\n" + text_of({"apiVersion": "v1", "kind": "List", "items": [workload()]}) + "---\n# end\n"
    )
    assert [str(one) for one in read_objects(text, "m.yaml")] == ["Deployment orders"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no Kubernetes object"),
        ("a: [", "not YAML"),
        ("kind: Deployment\nspec: {{ .Values.spec }}\n{{- end }}", "render it first, `helm template"),
        ("[]", "expected names with values"),
        ("a: 1", "kind: missing"),
        ("kind: A\nkind: B", "second value under this key"),
        ("!!python/object/apply:os.system [ls]", "not YAML"),
    ],
)
def test_files_that_hold_no_objects(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_objects(text, "m.yaml")


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=8),
    st.sampled_from(["25%", "0", "Deployment", "Recreate", "RollingUpdate", "$(POD_NAME)", "5s", "/tmp/x"]),
)  # fmt: skip
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = st.sampled_from(
    [
        ("metadata",), ("spec",), ("spec", "replicas"), ("spec", "strategy"), ("spec", "updateStrategy"),
        ("spec", "strategy", "rollingUpdate"), ("spec", "strategy", "rollingUpdate", "maxSurge"),
        ("spec", "template"),
        ("spec", "minReadySeconds"), ("spec", "progressDeadlineSeconds"), ("spec", "template", "metadata"),
        ("spec", "template", "spec"), ("spec", "template", "spec", "containers"),
        ("spec", "template", "spec", "containers", 0), ("spec", "template", "spec", "containers", 0, "env"),
        ("spec", "template", "spec", "containers", 0, "envFrom"), ("kind",), ("apiVersion",),
        ("spec", "template", "spec", "containers", 0, "readinessProbe"),
        ("spec", "template", "spec", "containers", 0, "lifecycle"),
        ("spec", "template", "spec", "containers", 0, "args"),
        ("spec", "template", "spec", "terminationGracePeriodSeconds"), ("spec", "podManagementPolicy"),
    ]
)  # fmt: skip


def problem_of(text: str) -> str | None:
    """The InputError for a manifest; None if it is understood. Any other exception fails the test."""
    try:
        plan_rollout(choose_consumer(read_objects(text, "m.yaml"), "m.yaml", None), GIVEN)
    except InputError as problem:
        return str(problem)
    return None


@given(
    st.sampled_from(["Deployment", "StatefulSet"]), st.lists(st.tuples(PATHS, JUNK), min_size=1, max_size=3)
)
def test_no_manifest_however_malformed_raises_anything_but_an_input_error(
    kind: str, spoiled: list[tuple[tuple[str | int, ...], Any]]
) -> None:
    document: Any = workload(
        kind, strategy={"rollingUpdate": {"maxSurge": 1}}, container=env(KAFKA_GROUP_ID="g")
    )
    for path, junk in spoiled:
        here = document
        try:
            for step in path[:-1]:
                here = here[step]
            here[path[-1]] = junk
        except (TypeError, KeyError, IndexError):
            continue  # an earlier one has replaced what this one is in
    found = problem_of(yaml.safe_dump(document))
    assert found is None or "\n" not in found


@given(st.text(max_size=200))
def test_no_text_raises_anything_but_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        choose_consumer(read_objects(text, "m.yaml"), "m.yaml", None)
