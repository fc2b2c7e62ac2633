"""What is read from HorizontalPodAutoscalers, ScaledObjects and PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

import pytest

from groupstorm.problems import InputError
from tests.storms.manifests.manifest_files import consumer_of, plan_of, workload


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


def test_a_scaled_object_with_its_defaults() -> None:
    plan = plan_of(workload(replicas=None), scaled_object())
    expected = {
        "members": 1, "autoscaler": "keda", "min_replicas": 0, "max_replicas": 100, "lag_threshold": 10,
        "polling_interval_ms": 30_000, "cooldown_ms": 300_000,
    }  # fmt: skip
    assert {name: plan.settings[name] for name in expected} == expected
    assert plan.consumer.unused == {}


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


def test_a_horizontal_pod_autoscaler_decides_if_there_are_no_replicas() -> None:
    autoscaler = {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "orders"}, "minReplicas": 3, "maxReplicas": 9,
        },
    }  # fmt: skip
    settings = plan_of(workload(replicas=None), autoscaler).settings
    assert (settings["members"], settings["min_replicas"], settings["max_replicas"]) == (3, 3, 9)


@pytest.mark.parametrize(("replicas", "members"), [(1, 3), (4, 4), (20, 9)])
def test_an_autoscaler_keeps_the_pods_within_its_bounds(replicas: int, members: int) -> None:
    bounds = scaled_object(minReplicaCount=3, maxReplicaCount=9)
    plan = plan_of(workload(replicas=replicas), bounds)
    assert plan.settings["members"] == members
    assert any(f"the rollout below is of {members}" in line for line in plan.read)


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


def test_budgets_and_autoscalers_of_others_are_not_used() -> None:
    other = scaled_object()
    other["spec"]["scaleTargetRef"]["name"] = "another"
    consumer = consumer_of(workload(), other)
    assert consumer.autoscaler is None
    assert consumer.unused == {"ScaledObject": 1}


def test_a_threshold_that_is_no_number() -> None:
    with pytest.raises(InputError, match=r"metadata.lagThreshold: 'many': expected a whole number"):
        plan_of(workload(), scaled_object({"lagThreshold": "many"}))
