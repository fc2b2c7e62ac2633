"""Autoscalers and disruption budgets of a workload, as settings of a scenario."""

from __future__ import annotations

from typing import Any, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.choice import KAFKA_TRIGGERS
from groupstorm.storms.deployments.manifests.fields import INT32_MAX, Fields
from groupstorm.storms.deployments.manifests.objects import KubernetesObject
from groupstorm.storms.scenario.autoscaler_settings import HPA, KEDA
from groupstorm.storms.scenario.pod_counts import PodCount
from groupstorm.storms.scenario.setting_types import MAX_MEMBERS

#: KEDA's flags and numbers in a Kafka trigger's metadata (texts, all of them), and their settings.
_FLAGS = {
    "allowIdleConsumers": "allow_idle_consumers",
    "limitToPartitionsWithLag": "limit_to_partitions_with_lag",
    "ensureEvenDistributionOfPartitions": "even_distribution",
}
_NUMBERS = {"lagThreshold": "lag_threshold", "activationLagThreshold": "activation_lag_threshold"}


class Scaling(NamedTuple):
    """``settings`` of the autoscaler, the least and the most pods, and a sentence on it."""

    least: int
    most: int
    settings: dict[str, Any]
    sentence: str


def read_autoscaler(found: KubernetesObject) -> Scaling:
    """A ScaledObject or a HorizontalPodAutoscaler, with their defaults. Raises InputError."""
    spec = found.fields.at("spec")
    if found.kind == "ScaledObject":
        return _scaled_object(found, spec)
    least, most = spec.whole("minReplicas", 1, 0, MAX_MEMBERS), spec.whole("maxReplicas", 1, 1, MAX_MEMBERS)
    settings: dict[str, Any] = {"autoscaler": HPA, "min_replicas": least, "max_replicas": most}
    settings |= _behavior(spec.at("behavior"))
    return Scaling(least, most, settings, f"{least} to {most} pods ({found})")


def _scaled_object(found: KubernetesObject, spec: Fields) -> Scaling:
    least = spec.whole("minReplicaCount", 0, 0, MAX_MEMBERS)
    most = spec.whole("maxReplicaCount", 100, 1, MAX_MEMBERS)
    settings: dict[str, Any] = {
        "autoscaler": KEDA,
        "min_replicas": least,
        "max_replicas": most,
        "polling_interval_ms": max(1, spec.seconds("pollingInterval", 30)) * 1000,
        "cooldown_ms": spec.seconds("cooldownPeriod", 300) * 1000,
    }
    for trigger in spec.objects("triggers"):
        if trigger.text("type") in KAFKA_TRIGGERS:
            settings |= _kafka_trigger(trigger.at("metadata"))
            break
    settings |= _behavior(spec.at("advanced", "horizontalPodAutoscalerConfig", "behavior"))
    threshold = f", lagThreshold {settings['lag_threshold']}" if "lag_threshold" in settings else ""
    return Scaling(least, most, settings, f"{least} to {most} pods{threshold} ({found})")


def _kafka_trigger(metadata: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {"lag_threshold": 10}
    for name, setting in _NUMBERS.items():
        written = metadata.scalar(name)
        if written is None:
            continue
        if not (written.isascii() and written.isdigit() and int(written) <= INT32_MAX):
            raise InputError(f"{metadata.where}.{name}: {written!r}: expected a whole number")
        settings[setting] = max(int(written), 1 if setting == "lag_threshold" else 0)
    for name, setting in _FLAGS.items():
        if (written := metadata.scalar(name)) is not None:
            settings[setting] = written.lower() == "true"
    return settings


def _behavior(behavior: Fields) -> dict[str, Any]:
    """The stabilization windows; policies of pods and per cent keep their defaults."""
    settings = {}
    for direction, setting in (
        ("scaleUp", "scale_up_stabilization_ms"),
        ("scaleDown", "scale_down_stabilization_ms"),
    ):
        rules = behavior.at(direction)
        if "stabilizationWindowSeconds" in rules:
            settings[setting] = rules.seconds("stabilizationWindowSeconds", 0) * 1000
    return settings


def read_budget(found: KubernetesObject, replicas: int) -> PodCount:
    """The number of ``replicas`` pods that may be missing: maxUnavailable, or all beyond minAvailable."""
    spec = found.fields.at("spec")
    if "minAvailable" in spec:
        least = spec.pods("minAvailable", PodCount(0)).of(replicas, round_up=True)
        return PodCount(max(0, replicas - least))
    return spec.pods("maxUnavailable", PodCount(1))
