"""Manifests that lack something, and files that are none: one line each, and no error but InputError."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.choice import choose_consumer
from groupstorm.storms.deployments.manifests.objects import read_objects
from groupstorm.storms.deployments.manifests.plan import plan_rollout
from tests.storms.manifests.manifest_files import GIVEN, consumer_of, env, text_of, workload


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
        ([workload("Rollout")], None, "only Rollout: Argo .* as a Deployment with its maxSurge and maxUnav"),
        ([workload("DeploymentConfig")], None, "only DeploymentConfig: .* as a Deployment"),
        ([workload("ScaledJob")], None, "only ScaledJob: each of its jobs is a consumer that comes and goes"),
        ([workload("DaemonSet")], None, "only DaemonSet: .* as many replicas as it has nodes, maxSurge 0"),
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
    ("found", "message"),
    [
        (workload(replicas=0), r"members \(pods: the manifest gives 0 replicas\)"),
        (workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
         "Deployment orders: max_unavailable: 0 with max_surge 0"),
        (workload(container=env(KAFKA_HEARTBEAT_INTERVAL_MS="50000")),
         r"must be lower than session.timeout.ms \(45000\); heartbeat.interval.ms=50000 \(env KAFKA_HEARTB"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_named_with_its_place(found: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan_rollout(consumer_of(found), GIVEN)


@pytest.mark.parametrize(
    ("kind", "group", "target", "command"),
    [
        ("ScaledObject", "keda.sh/v1alpha1", {"name": "orders"},
         "kubectl get deployment/orders scaledobject/s -n shop"),
        ("HorizontalPodAutoscaler", "autoscaling/v2", {"kind": "StatefulSet", "name": "pay"},
         "kubectl get statefulset/pay horizontalpodautoscaler/s -n shop"),
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
        ("KafkaConnect",
         {"replicas": 3, "config": {"group.id": "cdc", "scheduled.rebalance.max.delay.ms": 60_000}},
         ("3 workers of Kafka Connect, group.id cdc", "up to scheduled.rebalance.max.delay.ms (60.0 s)")),
        ("KafkaConnect", {}, ("1 worker of", "group.id connect-cluster:", "ms (300 s)")),
        ("KafkaConnect", {"config": {"connect.protocol": "eager"}}, ("stops the tasks of all workers",)),
        ("KafkaMirrorMaker2",
         {"connectCluster": "b", "clusters": [{}, {"alias": "b", "config": {"group.id": "mm"}}]},
         ("group.id mm:",)),
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
        ("replicaCount: 3", "values of a Helm chart become some with `helm template CHART"),
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
