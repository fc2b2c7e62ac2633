"""Kafka's settings in the variables and arguments of containers, as Kubernetes puts them in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.storms.manifests.manifest_files import env, plan_of, workload

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
    held = config_map("kafka", KAFKA_GROUP_INSTANCE_ID="$(POD_NAME)")
    [alarm] = plan_of(workload("StatefulSet", container=container), held).alarms
    assert alarm.startswith(
        "All pods have the same group.instance.id: $(POD_NAME) (ConfigMap kafka: KAFKA_GROUP_INSTANCE_ID)."
    )
    assert "kubernetes#69113" in alarm
    assert alarm.endswith(
        "Instead:\nenv:  # of container app\n"
        "  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n"
        '  - {name: KAFKA_GROUP_INSTANCE_ID, value: "$(POD_NAME)"}'
    )
    [alarm] = plan_of(workload(container=container), held).alarms
    assert "in a Deployment, in which each new pod has a new name" in alarm
    assert alarm.endswith("Instead:\n# remove ConfigMap kafka: KAFKA_GROUP_INSTANCE_ID")
    one_for_all = workload(container=env(KAFKA_GROUP_INSTANCE_ID="orders-1"))
    [alarm] = plan_of(one_for_all).alarms
    assert "FENCED_INSTANCE_ID" in alarm
    assert "69113" not in alarm
    assert not plan_of(one_for_all, **{"group.instance.id": "podname"}).alarms


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
    args = {"args": ["--group.instance.id=$(POD_NAME)"]}
    [alarm] = plan_of(workload("StatefulSet", container=args)).alarms
    assert alarm.endswith("# and $(POD_NAME) in args: group.instance.id")
    shell = {"command": ["sh", "-c", "java -Dgroup.instance.id=$(hostname) -jar x.jar"]}
    assert plan_of(workload(container=shell)).settings["group.instance.id"] == "podname"


def test_a_file_is_not_expanded_by_kubernetes() -> None:
    container = {"env": [POD_NAME], "volumeMounts": [{"name": "v", "mountPath": "/config"}]}
    text = "spring.kafka.consumer.properties.group.instance.id: $(POD_NAME)"
    files = config_map("files", **{"application.yaml": text})
    pod = {"volumes": [{"name": "v", "configMap": {"name": "files"}}]}
    [alarm] = plan_of(workload("StatefulSet", container=container, pod=pod), files).alarms
    assert "and ${POD_NAME} in ConfigMap files: application.yaml: spring.kafka" in alarm


@pytest.mark.parametrize(
    ("name", "value", "setting"),
    [
        ("MP_MESSAGING_INCOMING_ORDERS_EU_SESSION_TIMEOUT_MS", 9_000, "session.timeout.ms"),
        ("MP_MESSAGING_INCOMING_ORDERS_PARTITIONS", 2, "members_per_pod"),
        ("SPRING_CLOUD_STREAM_KAFKA_BINDER_CONSUMERPROPERTIES_MAX_POLL_RECORDS", 7, "max.poll.records"),
        (
            "SPRING_CLOUD_STREAM_KAFKA_BINDINGS_INPUT_CONSUMER_CONFIGURATION_SESSION_TIMEOUT_MS",
            9_000,
            "session.timeout.ms",
        ),
        ("KAFKA_CONSUMERS_DEFAULT_MAX_POLL_RECORDS", 7, "max.poll.records"),
        ("ORDERS_KAFKA_CONSUMER_MAX_POLL_INTERVAL_MS", 60_000, "max.poll.interval.ms"),
    ],
)
def test_settings_in_the_words_of_frameworks(name: str, value: int, setting: str) -> None:
    plan = plan_of(workload(container=env(**{name: value})))
    assert plan.settings[setting] == value
    assert plan.unused == []


@pytest.mark.parametrize("name", ["REDIS_SESSION_TIMEOUT_MS", "KAFKA_SESSION_TIMEOUT"])
def test_a_variable_that_may_be_a_setting_is_named(name: str) -> None:
    """Nothing says that it is Kafka's, or in which unit."""
    plan = plan_of(workload(container=env(**{name: 9})))
    assert "session.timeout.ms" not in plan.settings
    why = "if it sets session.timeout.ms, give it with --set session.timeout.ms=VALUE"
    assert plan.unused == [f"{name} (env {name}: {why})"]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("SPRING_KAFKA_CONSUMER_SESSION_TIMEOUT_MS", "session.timeout.ms"),
        ("SPRING_KAFKA_CONSUMER_MAX_POLL_INTERVAL_MS", "max.poll.interval.ms"),
        ("spring.kafka.consumer.heartbeat-interval-ms", "heartbeat.interval.ms"),
    ],
)
def test_a_name_that_spring_boot_passes_by_sets_nothing(name: str, setting: str) -> None:
    """KafkaProperties.Consumer has maxPollInterval and heartbeatInterval, and no session timeout."""
    plan = plan_of(workload(container=env(**{name: 9_000})))
    assert setting not in plan.settings
    [said] = plan.unused
    assert f"spring.kafka.consumer.properties.{setting} is its name" in said
    assert f"--set {setting}=9000" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["--consumer-property", "session.timeout.ms=9000"],
        ["--consumer-property=session.timeout.ms=9000"],
        ["-X", "session.timeout.ms=9000"],
        ["-Xsession.timeout.ms=9000"],
        ["--session.timeout.ms", "9000"],
        ["-c", "exec consume --kafka-session-timeout-ms='9000' --verbose"],
    ],
)
def test_settings_in_the_arguments_of_a_program(arguments: list[str]) -> None:
    assert plan_of(workload(container={"args": arguments})).settings["session.timeout.ms"] == 9_000


def test_variables_of_other_clients_are_nobodys() -> None:
    names = ("KAFKA_PRODUCER_REQUEST_TIMEOUT_MS", "HTTP_REQUEST_TIMEOUT_MS", "REQUEST_TIMEOUT_MS")
    plan = plan_of(workload(container=env(**dict.fromkeys(names, 9))))
    assert "request.timeout.ms" not in plan.settings
    assert plan.unused == []


def test_of_two_channels_one_is_told_and_the_other_named() -> None:
    names = ("MP_MESSAGING_INCOMING_A_MAX_POLL_RECORDS", "MP_MESSAGING_INCOMING_B_MAX_POLL_RECORDS")
    plan = plan_of(workload(container=env(**dict(zip(names, (5, 7), strict=True)))))
    assert plan.settings["max.poll.records"] == 7
    assert plan.unused == [f"{names[0]}=5 (the figures are of one consumer, with {names[1]}=7)"]


def test_of_two_groups_one_is_told_and_the_other_named() -> None:
    names = ("ORDERS_KAFKA_GROUP_ID", "PAYMENTS_KAFKA_GROUP_ID")
    plan = plan_of(workload(container=env(**dict(zip(names, ("orders", "payments"), strict=True)))))
    assert "group.id=payments (env PAYMENTS_KAFKA_GROUP_ID)" in plan.read
    assert plan.unused == [f"{names[0]}=orders (the figures are of one consumer, with {names[1]}=payments)"]
    alike = plan_of(workload(container=env(**dict.fromkeys(names, "orders"))))
    assert alike.unused == []
