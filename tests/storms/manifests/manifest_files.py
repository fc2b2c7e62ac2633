"""Manifests for tests: a Deployment or StatefulSet from its differences, as YAML."""

from __future__ import annotations

from typing import Any

import yaml

from groupstorm.storms.deployments.manifests.choice import Consumer, choose_consumer
from groupstorm.storms.deployments.manifests.objects import read_objects
from groupstorm.storms.deployments.manifests.plan import Plan, plan_rollout

GIVEN: dict[str, Any] = {"partitions": 12, "record_rate": 10, "start_ms": 10_000}


def workload(
    kind: str = "Deployment", name: str = "orders", container: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """An object; ``spec`` are fields of its spec, ``container`` of its one container."""
    pod = {"containers": [{"name": "app", "image": "x", **(container or {})}], **spec.pop("pod", {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 4, "template": template, **spec},
    }


def env(**variables: object) -> dict[str, Any]:
    """Fields of a container: its variables."""
    return {"env": [{"name": name, "value": value} for name, value in variables.items()]}


def text_of(*objects: dict[str, Any]) -> str:
    return yaml.safe_dump_all(objects)


def consumer_of(*objects: dict[str, Any], wanted: str | None = None) -> Consumer:
    return choose_consumer(read_objects(text_of(*objects), "m.yaml"), "m.yaml", wanted)


def plan_of(*objects: dict[str, Any], **given: Any) -> Plan:
    return plan_rollout(consumer_of(*objects), {**GIVEN, **given})
