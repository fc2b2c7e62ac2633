"""The lines to paste for the alternatives to a rollout."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.report.rollout import lines_to_paste
from groupstorm.storms.deployments.alternatives import alternatives_to
from groupstorm.storms.scenario.settings import Settings
from tests.storms.manifests.manifest_files import plan_of, workload

READY = {"readinessProbe": {"httpGet": {"port": 80}}}
JAVA, SPRING = "org.apache.kafka.clients.consumer.", "spring.kafka.consumer.properties."
POD_NAME = {"name": "KAFKA_GROUP_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def env(**values: str) -> dict[str, Any]:
    return {**READY, "env": [{"name": name, "value": value} for name, value in values.items()]}


def lines_of(one: dict[str, Any], **given: Any) -> dict[str, list[str]]:
    plan = plan_of(one, **given)
    settings = Settings(("", plan.settings))
    return {
        each.name: lines_to_paste(each.settings, plan, settings) for each in alternatives_to(plan, settings)
    }


def test_an_eager_spring_application() -> None:
    found = lines_of(
        workload(
            container=env(
                SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS="6000",
                SPRING_KAFKA_CONSUMER_PROPERTIES_PARTITION_ASSIGNMENT_STRATEGY=f"{JAVA}RangeAssignor",
            )
        )
    )
    assert found["cooperative-sticky"] == [
        "# first deployment (env SPRING_KAFKA_CONSUMER_PROPERTIES_PARTITION_ASSIGNMENT_STRATEGY)",
        f"{SPRING}partition.assignment.strategy={JAVA}CooperativeStickyAssignor,{JAVA}RangeAssignor",
        "# second deployment, once the first is complete",
        f"{SPRING}partition.assignment.strategy={JAVA}CooperativeStickyAssignor",
    ]
    assert found["static-members"] == [
        "apiVersion: apps/v1",
        "kind: StatefulSet  # in place of the Deployment",
        "metadata: {name: orders}",
        "spec:",
        "  serviceName: orders  # a headless Service",
        "  template:",
        "    spec:",
        "      containers:",
        "        - name: app",
        "          env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
        "# ${POD_NAME}: the pod's name, from its environment",
        f"{SPRING}group.instance.id=${{POD_NAME}}",
        "# in place of env SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS, which goes before it",
        f"{SPRING}session.timeout.ms=20000",
    ], "a session of 6 s would end before a pod is back"
    assert found["kip-848"] == [
        f"{SPRING}group.protocol=consumer",
        "# remove partition.assignment.strategy "
        "(env SPRING_KAFKA_CONSUMER_PROPERTIES_PARTITION_ASSIGNMENT_STRATEGY)",
        "# remove session.timeout.ms (env SPRING_KAFKA_CONSUMER_PROPERTIES_SESSION_TIMEOUT_MS)",
    ]


@pytest.mark.parametrize(
    ("container", "where"),
    [
        ({"args": [f"--{SPRING}session.timeout.ms=6000"]}, f"args: {SPRING}session.timeout.ms"),
        (env(SPRING_APPLICATION_JSON=f'{{"{SPRING}session.timeout.ms": 6000}}'),
         f"env SPRING_APPLICATION_JSON: {SPRING}session.timeout.ms"),
        (env(JAVA_OPTS=f"-D{SPRING}session.timeout.ms=6000"),
         f"env JAVA_OPTS: -D{SPRING}session.timeout.ms"),
    ],
)  # fmt: skip
def test_what_goes_before_springs_files_has_to_go(container: dict[str, Any], where: str) -> None:
    found = lines_of(workload(container=container))
    assert found["static-members"][-2:] == [
        f"# in place of {where}, which goes before it",
        f"{SPRING}session.timeout.ms=20000",
    ]


def test_members_with_javas_defaults_know_the_assignor_already() -> None:
    assert lines_of(workload(container=READY))["cooperative-sticky"] == [
        f"partition.assignment.strategy={JAVA}CooperativeStickyAssignor"
    ]


def test_short_names_stay_short() -> None:
    found = lines_of(workload(container=env(KAFKA_PARTITION_ASSIGNMENT_STRATEGY="range")))
    assert found["cooperative-sticky"] == [
        "# first deployment (env KAFKA_PARTITION_ASSIGNMENT_STRATEGY)",
        "partition.assignment.strategy=cooperative-sticky,range",
        "# second deployment, once the first is complete",
        "partition.assignment.strategy=cooperative-sticky",
    ]


@pytest.mark.parametrize(
    ("profile", "lines"),
    [
        ("librdkafka", ["partition.assignment.strategy=cooperative-sticky"]),
        ("franz-go",
         ["# first deployment", "kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer()),",
          "# second deployment, once the first is complete",
          "kgo.Balancers(kgo.CooperativeStickyBalancer()),"]),
        ("kafka-python",
         ["# first deployment",
          "partition_assignment_strategy=[CooperativeStickyAssignor, RangePartitionAssignor],",
          "# second deployment, once the first is complete",
          "partition_assignment_strategy=[CooperativeStickyAssignor],"]),
    ],
)  # fmt: skip
def test_other_client_libraries(profile: str, lines: list[str]) -> None:
    given = {"client_profile": profile, "partition.assignment.strategy": ["range"]}
    assert lines_of(workload(container=READY), **given)["cooperative-sticky"] == lines


def test_static_members_that_become_dynamic() -> None:
    found = lines_of(workload(container={**READY, "env": [POD_NAME]}))
    assert found["dynamic-members"] == ["# remove group.instance.id (env KAFKA_GROUP_INSTANCE_ID)"]
    assert found["static-members"] == [
        "apiVersion: apps/v1",
        "kind: StatefulSet  # in place of the Deployment",
        "metadata: {name: orders}",
        "spec:",
        "  serviceName: orders  # a headless Service",
    ], "the id is there already"


def test_the_session_of_a_consumer_group() -> None:
    container = env(KAFKA_GROUP_PROTOCOL="consumer", KAFKA_GROUP_ID="payments")
    found = lines_of(workload("StatefulSet", container=container), start_ms=60_000)
    assert found["static-members"][-2:] == [
        "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups \\",
        "  --entity-name payments --add-config consumer.session.timeout.ms=60000",
    ]


def test_fields_of_the_workload() -> None:
    assert lines_of(workload(container=READY))["more-surge"] == [
        "spec:",
        "  strategy:",
        "    type: RollingUpdate",
        "    rollingUpdate: {maxSurge: 100%, maxUnavailable: 0}",
    ]
    stateful = lines_of(workload("StatefulSet", replicas=8))
    assert stateful["several-at-once"] == [
        "spec:",
        "  updateStrategy:",
        "    type: RollingUpdate",
        "    rollingUpdate: {maxUnavailable: 25%}",
    ]
    assert stateful["readiness-probe"] == [
        "spec:",
        "  template:",
        "    spec:",
        "      containers:",
        "        - name: app",
        "          readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 10}"
        "  # succeeds once the consumer polls",
    ]


def test_alternatives_to_a_recreated_deployment_say_that_it_rolls() -> None:
    found = lines_of(workload(container=READY, strategy={"type": "Recreate"}))
    rolling = [
        "spec:",
        "  strategy:",
        "    type: RollingUpdate",
        "    rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}",
    ]
    assert found["rolling-update"] == rolling
    assert found["kip-848"] == [*rolling, "group.protocol=consumer"]
    assert not any("rollingUpdate" in line for line in found["static-members"])


@pytest.mark.parametrize(
    ("variable", "line"),
    [
        ("SPRING_KAFKA_STREAMS_APPLICATION_ID", "spring.kafka.streams.properties.num.standby.replicas=1"),
        (
            "SPRING_CLOUD_STREAM_KAFKA_STREAMS_BINDER_APPLICATION_ID",
            "spring.cloud.stream.kafka.streams.binder.configuration.num.standby.replicas=1",
        ),
        ("QUARKUS_KAFKA_STREAMS_APPLICATION_ID", "kafka-streams.num.standby.replicas=1"),
        ("KSQL_KSQL_SERVICE_ID", '- {name: KSQL_KSQL_STREAMS_NUM_STANDBY_REPLICAS, value: "1"}'),
        ("JOINS_KAFKA_NUM_STREAM_THREADS", '- {name: JOINS_KAFKA_NUM_STANDBY_REPLICAS, value: "1"}'),
        ("KAFKA_STREAMS_APPLICATION_ID", "num.standby.replicas=1"),
    ],
)
def test_kafka_streams_as_its_framework_spells_it(variable: str, line: str) -> None:
    found = lines_of(workload(container=env(**{variable: "4"})), state_bytes=10**9)
    assert found["standbys"] == [line]


def test_standbys_of_a_streams_group_are_the_groups() -> None:
    """StreamsConfig: an application's own num.standby.replicas is ignored with group.protocol=streams."""
    application = {"KAFKA_STREAMS_APPLICATION_ID": "joins", "KAFKA_STREAMS_GROUP_PROTOCOL": "streams"}
    found = lines_of(workload(container=env(**application)), state_bytes=10**9)
    configs = [
        "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type groups \\",
        "  --entity-name joins --add-config streams.num.standby.replicas=1",
    ]
    assert found["standbys"] == configs
    classic = {"KAFKA_STREAMS_APPLICATION_ID": "joins", "KAFKA_STREAMS_NUM_STANDBY_REPLICAS": "1"}
    found = lines_of(workload(container=env(**classic)), state_bytes=10**9)
    assert found["streams-group"][1:] == configs


def test_an_application_with_state_that_becomes_a_stateful_set_gets_a_volume() -> None:
    container = env(KSQL_KSQL_SERVICE_ID="joins")
    assert lines_of(workload(container=container), state_bytes=10**9)["static-members"] == [
        "apiVersion: apps/v1",
        "kind: StatefulSet  # in place of the Deployment",
        "metadata: {name: orders}",
        "spec:",
        "  serviceName: orders  # a headless Service",
        "  volumeClaimTemplates:",
        "    - metadata: {name: state}",
        "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}",
        "  template:",
        "    spec:",
        "      containers:",
        "        - name: app",
        "          env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
        "          volumeMounts: [{name: state, mountPath: STATE_DIR}]  # state.dir",
        "# $(POD_NAME): the pod's name, from its environment",
        '- {name: KSQL_KSQL_STREAMS_GROUP_INSTANCE_ID, value: "$(POD_NAME)"}',
    ]
    stateless = {"stateless_topics": 1, "state_bytes": 0}
    assert not any(
        "volume" in line for line in lines_of(workload(container=container), **stateless)["static-members"]
    )


def test_a_stateful_set_without_a_disk_of_its_own_gets_one() -> None:
    container = env(KAFKA_STREAMS_NUM_STREAM_THREADS="2")
    assert lines_of(workload("StatefulSet", container=container), state_bytes=10**9)["volumes"] == [
        "spec:",
        "  volumeClaimTemplates:",
        "    - metadata: {name: state}",
        "      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: SIZE}}}",
        "  template:",
        "    spec:",
        "      containers:",
        "        - name: app",
        "          volumeMounts: [{name: state, mountPath: STATE_DIR}]  # state.dir",
    ]


@pytest.mark.parametrize(
    ("name", "is_told"), [("KAFKA_CONSUMER_THREADS", True), ("SPRING_KAFKA_LISTENER_CONCURRENCY", False)]
)
def test_consumers_of_one_pod_need_ids_of_their_own(name: str, is_told: bool) -> None:
    """Spring numbers the ids of a container's consumers; nobody does so for threads of one's own."""
    container = env(**{name: "3"})
    [line] = (one for one in lines_of(workload(container=container))["static-members"] if "# $" in one)
    assert line.endswith(", and in code a number for each of its 3 consumers") is is_told
    container["env"].append(POD_NAME)
    found = plan_of(workload("StatefulSet", container=container)).findings
    assert any("those with one group.instance.id fence each other" in one for one in found) is is_told
