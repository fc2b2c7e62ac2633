"""Reading of HorizontalPodAutoscalers, ScaledObjects and PodDisruptionBudgets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from groupstorm.problems import InputError
from tests.storms.manifests.manifest_files import consumer_of, env, plan_of, workload


def scaled_object(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "orders-lag"},
        "spec": {
            "scaleTargetRef": {"name": "orders"},
            "triggers": [{"type": "cron"}, {"type": "kafka", "metadata": metadata or {}}],
            **spec,
        },
    }


def horizontal(**spec: Any) -> dict[str, Any]:
    own = {"scaleTargetRef": {"name": "orders"}, "maxReplicas": 20, **spec}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    return {**kind, "spec": own}


def test_a_scaled_object_with_its_defaults() -> None:
    plan = plan_of(workload(replicas=None), scaled_object())
    expected = {
        "members": 1, "autoscaler": "keda", "min_replicas": 0, "max_replicas": 100, "lag_threshold": 10,
        "polling_interval_ms": 30_000, "cooldown_ms": 300_000,
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert plan.consumer.unused == {}
    assert any(one.startswith("ScaledObject orders-lag is not part of the run: no") for one in plan.findings)


def test_kedas_scaler_sees_no_lag_of_a_share_group() -> None:
    plan = plan_of(workload(replicas=6), scaled_object(), **{"group.protocol": "share"})
    assert any("takes each partition for one record of lag" in one for one in plan.findings)
    assert not any("own nothing" in one for one in plan.findings)
    assert not any("is not part of the run" in one for one in plan.findings)


def test_what_a_scaled_object_says() -> None:
    metadata = {
        "lagThreshold": "500", "activationLagThreshold": "3", "allowIdleConsumers": "true",
        "limitToPartitionsWithLag": "false",
    }  # fmt: skip
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    plan = plan_of(
        workload(replicas=6),
        scaled_object(metadata, minReplicaCount=2, maxReplicaCount=12, cooldownPeriod=60, advanced=advanced),
    )
    expected = {
        "members": 6, "min_replicas": 2, "max_replicas": 12, "lag_threshold": 500, "cooldown_ms": 60_000,
        "activation_lag_threshold": 3, "allow_idle_consumers": True, "limit_to_partitions_with_lag": False,
        "scale_down_stabilization_ms": 60_000,
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert any("2 to 12 pods, lagThreshold 500 (ScaledObject orders-lag)" in line for line in plan.read)


ONE_IN_20_MIN = {"type": "Pods", "value": 1, "periodSeconds": 1_200}


def test_the_policies_of_a_behavior() -> None:
    rules = {
        "scaleDown": {"stabilizationWindowSeconds": 2_400, "policies": [ONE_IN_20_MIN]},
        "scaleUp": {"stabilizationWindowSeconds": 300, "selectPolicy": "Min"},
    }
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": rules}}
    for autoscaler in (scaled_object(advanced=advanced), horizontal(behavior=rules)):
        settings = plan_of(workload(), autoscaler).settings
        assert settings["scale_down_behavior"] == {"policies": [ONE_IN_20_MIN], "selectPolicy": "Max"}
        assert settings["scale_up_behavior"]["selectPolicy"] == "Min"
        assert len(settings["scale_up_behavior"]["policies"]) == 2, "Kubernetes' defaults"
        assert settings["scale_up_stabilization_ms"] == 300_000
    said = plan_of(workload(), horizontal(behavior=rules)).read
    assert any(
        "upwards at most 4 in 15 s and 100 % in 15 s, downwards at most 1 in 1200 s" in one for one in said
    )


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {**ONE_IN_20_MIN, "periodSeconds": 2_000},
            "periodSeconds: 2000: expected a whole number from 1 to 1800",
        ),
        ({**ONE_IN_20_MIN, "type": "Some"}, "type: 'Some': expected Pods or Percent"),
        ({"type": "Pods", "value": 1}, "expected {type: Pods"),
    ],
)
def test_a_policy_that_kubernetes_refuses(policy: dict[str, Any], message: str) -> None:
    advanced = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"policies": [policy]}}}}
    with pytest.raises(InputError, match=re.escape(message)):
        plan_of(workload(), scaled_object(advanced=advanced))


def test_the_lag_of_a_horizontal_pod_autoscaler_and_metrics_that_are_none() -> None:
    lag = {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"averageValue": "2k"}}}
    cpu = {"type": "Resource", "resource": {"name": "cpu"}}
    plan = plan_of(workload(), horizontal(metrics=[cpu, lag]))
    assert plan.settings["lag_threshold"] == 2_000
    assert plan.unused == [
        "HorizontalPodAutoscaler h: metric Resource cpu (autoscale knows the group's lag only)"
    ]


@pytest.mark.parametrize(
    ("concurrency", "most", "idle"),
    [
        (3, 4, None),
        (3, 5, "With 5 pods (ScaledObject orders-lag) 15 members share 12 partitions: 3 own"),
        (1, 20, None),
    ],
)
def test_the_most_pods_with_several_consumers_each(concurrency: int, most: int, idle: str | None) -> None:
    container = env(SPRING_KAFKA_LISTENER_CONCURRENCY=str(concurrency))
    plan = plan_of(workload(replicas=2, container=container), scaled_object(maxReplicaCount=most))
    said = [one for one in plan.findings if "members share" in one]
    assert [one.startswith(idle or "-") for one in said] == ([True] if idle else [])


def test_keda_fields_that_are_not_used_are_named_with_the_reason() -> None:
    found = scaled_object(
        {"excludePersistentLag": "true", "lagThreshold": "5"}, minReplicaCount=2, cooldownPeriod=60,
        idleReplicaCount=0, advanced={"scalingModifiers": {"target": "2"}},
    )  # fmt: skip
    assert plan_of(workload(), found).unused == [
        "ScaledObject orders-lag: idleReplicaCount (not emulated)",
        "ScaledObject orders-lag: scalingModifiers (not emulated)",
        "ScaledObject orders-lag: cooldownPeriod (with minReplicaCount 2 KEDA never scales to or from zero)",
        "ScaledObject orders-lag: trigger cron (autoscale knows one topic's lag)",
        "ScaledObject orders-lag: excludePersistentLag (not emulated)",
    ]


def test_a_scaled_object_of_kedas_first_version() -> None:
    found = scaled_object({"lagThreshold": "7"})
    found["apiVersion"] = "keda.k8s.io/v1alpha1"
    found["spec"]["scaleTargetRef"] = {"deploymentName": "orders"}
    assert plan_of(workload(), workload(name="web"), found).settings["lag_threshold"] == 7


def test_a_horizontal_pod_autoscaler_decides_if_there_are_no_replicas() -> None:
    target = {"kind": "Deployment", "name": "orders"}
    autoscaler = horizontal(scaleTargetRef=target, minReplicas=3, maxReplicas=9)
    settings = plan_of(workload(replicas=None), autoscaler).settings
    assert (settings["members"], settings["min_replicas"], settings["max_replicas"]) == (3, 3, 9)


@pytest.mark.parametrize(("replicas", "members"), [(1, 3), (4, 4), (20, 9)])
def test_an_autoscaler_keeps_the_pods_within_its_bounds(replicas: int, members: int) -> None:
    bounds = scaled_object(minReplicaCount=3, maxReplicaCount=9)
    plan = plan_of(workload(replicas=replicas), bounds)
    assert plan.settings["members"] == members
    assert any(line.startswith(f"{members} pods when the rollout begins (") for line in plan.assumed)


@pytest.mark.parametrize(
    ("record_rate", "concurrency", "members"),
    [
        (80, 1, 1),  # 960 of the 1,000 records a second that one consumer processes
        (90, 1, 2),
        (400, 1, 6),  # 4,800: five consumers would have three partitions at most, which is 1,200
        (400, 4, 8),  # pods of four
        (990, 1, 9),  # no more than the autoscaler allows
    ],
)
def test_an_autoscaler_has_started_as_many_pods_as_keep_up(
    record_rate: int, concurrency: int, members: int
) -> None:
    """A manifest whose replicas an autoscaler sets mostly has none: with one pod nothing could be told."""
    bounds = scaled_object(minReplicaCount=0, maxReplicaCount=9)
    container = env(SPRING_KAFKA_LISTENER_CONCURRENCY=concurrency)
    settings = plan_of(workload(replicas=None, container=container), bounds, record_rate=record_rate).settings
    assert settings["members"] == members


@pytest.mark.parametrize(("record_rate", "pods"), [(400, 3), (600, 6)])
def test_an_autoscaler_counts_pods_and_not_threads(record_rate: int, pods: int) -> None:
    """Six threads have two partitions each: at 600 records a second it takes twelve, as one does 1,000."""
    container = env(KAFKA_NUM_STREAM_THREADS="2")
    bounds = scaled_object(minReplicaCount=0, maxReplicaCount=9)
    plan = plan_of(workload(replicas=3, container=container), bounds, record_rate=record_rate, state_bytes=0)
    assert plan.settings["members"] == pods


@pytest.mark.parametrize(
    ("spec", "budget"),
    [({"maxUnavailable": "25%"}, "25%"), ({"minAvailable": 3}, 1), ({"minAvailable": "50%"}, 2), ({}, 1)],
)
def test_a_disruption_budget_of_the_pods(spec: dict[str, Any], budget: int | str) -> None:
    found = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "orders"}}, **spec},
    }  # fmt: skip
    assert plan_of(workload(), found).settings["disruption_budget"] == budget


@pytest.mark.parametrize(
    ("selector", "is_used"),
    [
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["orders", "mails"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["orders"]}]}, False),
        ({"matchLabels": {"app": "orders"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
        ({}, True),  # all pods of the namespace
        (None, False),
    ],
)
def test_the_selector_of_a_disruption_budget(selector: dict[str, Any] | None, is_used: bool) -> None:
    spec = {"maxUnavailable": 2} | ({} if selector is None else {"selector": selector})
    found = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": spec,
    }
    assert (consumer_of(workload(), found).budget is not None) is is_used


def test_budgets_and_autoscalers_of_others_are_not_used() -> None:
    other = scaled_object()
    other["spec"]["scaleTargetRef"]["name"] = "another"
    consumer = consumer_of(workload(), other)
    assert consumer.autoscaler is None
    assert consumer.unused == {"ScaledObject": 1}


def test_a_threshold_that_is_no_number() -> None:
    for refused in ("many", "0"):
        with pytest.raises(InputError, match=f"lagThreshold: '{refused}': expected a whole number from 1 on"):
            plan_of(workload(), scaled_object({"lagThreshold": refused}))
