"""HorizontalPodAutoscalers and KEDA's ScaledObjects, with their defaults, and what of them is not used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.objects import INT32_MAX, Fields, KubernetesObject
from groupstorm.storms.runs.load import member_load
from groupstorm.storms.scenario.quantities import MAX, read_scaling_behavior
from groupstorm.storms.scenario.setting_names import HPA, KEDA, MAX_MEMBERS
from groupstorm.storms.scenario.settings import Settings

#: Types of KEDA's triggers that read a consumer group's lag.
KAFKA_TRIGGERS = ("kafka", "apache-kafka")
#: The API groups of the kinds; KEDA's first version had another one.
_GROUPS = {"HorizontalPodAutoscaler": ("autoscaling",), "ScaledObject": ("keda.sh", "keda.k8s.io")}

#: KEDA's flags and numbers in a Kafka trigger's metadata (texts, all of them), and their settings.
_FLAGS = {
    "allowIdleConsumers": "allow_idle_consumers",
    "limitToPartitionsWithLag": "limit_to_partitions_with_lag",
    "ensureEvenDistributionOfPartitions": "even_distribution",
}
_NUMBERS = {"lagThreshold": "lag_threshold", "activationLagThreshold": "activation_lag_threshold"}

#: Fields that change what an autoscaler does, and why they are not used.
_UNUSED = {
    "autoscaling.keda.sh/paused": "not paused here",
    "autoscaling.keda.sh/paused-replicas": "not paused here",
    "idleReplicaCount": "not emulated",
    "initialCooldownPeriod": "not emulated",
    "fallback": "the metric is always there",
    "scalingModifiers": "not emulated",
    "excludePersistentLag": "not emulated",
    "partitionLimitation": "all partitions count",
    "scaleToZeroOnInvalidOffset": "not emulated",
    "offsetResetPolicy": "a partition without an offset counts as one record of lag",
}

_DEFAULT_POLICIES = {
    "scaleUp": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
    "scaleDown": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_QUANTITY = re.compile(r"(\d{1,9})(k?)")


class Scaling(NamedTuple):
    """``settings`` of the autoscaler, the least and the most pods, a sentence on it, and what is not used."""

    least: int
    most: int
    settings: dict[str, Any]
    sentence: str
    unused: list[str]


def is_autoscaler(found: KubernetesObject) -> bool:
    return found.group in _GROUPS.get(found.kind, ())


def target_of(found: KubernetesObject) -> tuple[str, str]:
    """Kind and name of the workload that it scales."""
    target = found.fields.at("spec", "scaleTargetRef")
    return target.text("kind", "Deployment"), target.text("name") or target.text("deploymentName")


def read_autoscaler(found: KubernetesObject) -> Scaling:
    """A ScaledObject or a HorizontalPodAutoscaler, with their defaults. Raises InputError."""
    spec = found.fields.at("spec")
    return _scaled_object(found, spec) if found.kind == "ScaledObject" else _horizontal(found, spec)


def pods_at_rollout(settings: Settings, most: int) -> tuple[int, str]:
    """The pods that run before a rollout, and why: those of ``settings``, or as many more as keep up."""
    load, pods = member_load(settings), settings.processes
    each = load.members // pods
    if load.per_member is not None and load.of_unluckiest(load.members) >= load.per_member:
        enough = min(-(-(load.enough_members() or most * each) // each), most)
        if enough > pods:
            return enough, f"{pods} cannot keep up, so the autoscaler has started more"
    return pods, "the manifest's replicas within the autoscaler's limits, or its least"


def _horizontal(found: KubernetesObject, spec: Fields) -> Scaling:
    least, most = spec.whole("minReplicas", 1, 0, MAX_MEMBERS), spec.whole("maxReplicas", 1, 1, MAX_MEMBERS)
    settings: dict[str, Any] = {"autoscaler": HPA, "min_replicas": least, "max_replicas": most}
    unused = []
    for metric in spec.objects("metrics"):
        external = metric.at("external")
        lag = _QUANTITY.fullmatch(external.at("target").scalar("averageValue") or "")
        if lag is not None and "lag_threshold" not in settings:
            settings["lag_threshold"] = max(1, int(lag[1]) * (1000 if lag[2] else 1))
            continue
        kind = metric.text("type")
        name = external.at("metric").text("name") or metric.at("resource").text("name")
        unused.append(f"metric {kind} {name} (autoscale knows the group's lag only)")
    if "targetCPUUtilizationPercentage" in spec:
        unused.append("targetCPUUtilizationPercentage (autoscale knows the group's lag only)")
    behavior, unused_of_it = _behavior(spec.at("behavior"))
    return _scaling(found, settings | behavior, [*unused, *unused_of_it])


def _scaled_object(found: KubernetesObject, spec: Fields) -> Scaling:
    least = spec.whole("minReplicaCount", 0, 0, MAX_MEMBERS)
    settings: dict[str, Any] = {
        "autoscaler": KEDA,
        "min_replicas": least,
        "max_replicas": spec.whole("maxReplicaCount", 100, 1, MAX_MEMBERS),
        "polling_interval_ms": max(1, spec.seconds("pollingInterval", 30)) * 1000,
        "cooldown_ms": spec.seconds("cooldownPeriod", 300) * 1000,
    }
    advanced = spec.at("advanced")
    unused = _named(found.fields.at("metadata", "annotations"), spec, advanced)
    for name in ("pollingInterval", "cooldownPeriod"):
        if least and name in spec:
            unused.append(f"{name} (with minReplicaCount {least} KEDA never scales to or from zero)")
    is_read = False
    for trigger in spec.objects("triggers"):
        if trigger.text("type") in KAFKA_TRIGGERS and not is_read:
            is_read = True
            settings |= _kafka_trigger(trigger.at("metadata"))
            unused += _named(trigger.at("metadata"))
            if trigger.text("metricType", "AverageValue") != "AverageValue":
                unused.append(f"metricType {trigger.text('metricType')} (AverageValue is taken)")
        else:
            unused.append(f"trigger {trigger.text('type')} (autoscale knows one topic's lag)")
    behavior, unused_of_it = _behavior(advanced.at("horizontalPodAutoscalerConfig", "behavior"))
    return _scaling(found, settings | behavior, [*unused, *unused_of_it])


def _scaling(found: KubernetesObject, settings: dict[str, Any], unused: Iterable[str]) -> Scaling:
    least, most = settings["min_replicas"], settings["max_replicas"]
    said = f"{least} to {most} pods"
    if "lag_threshold" in settings:
        said += f", lagThreshold {settings['lag_threshold']}"
    for name, words in (("scale_up_behavior", "upwards"), ("scale_down_behavior", "downwards")):
        if name in settings:
            said += f", {words} {_in_words(settings[name])}"
    return Scaling(least, most, settings, f"{said} ({found})", [f"{found}: {one}" for one in unused])


def _in_words(behavior: dict[str, Any]) -> str:
    if behavior["selectPolicy"] == "Disabled":
        return "never"
    policies = [
        f"{one['value']}{' %' if one['type'] == 'Percent' else ''} in {one['periodSeconds']} s"
        for one in behavior["policies"]
    ]
    joined = (" and " if behavior["selectPolicy"] == "Min" else " or ").join(policies)
    return f"at most {joined}"


def _named(*places: Fields) -> list[str]:
    return [f"{name} ({_UNUSED[name]})" for fields in places for name in fields.names() if name in _UNUSED]


def _kafka_trigger(metadata: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {"lag_threshold": 10}
    for name, setting in _NUMBERS.items():
        written = metadata.scalar(name)
        if written is None:
            continue
        least = 1 if setting == "lag_threshold" else 0  # KEDA refuses a trigger with less
        if not (written.isascii() and written.isdigit() and least <= int(written) <= INT32_MAX):
            raise InputError(f"{metadata.where}.{name}: {written!r}: expected a whole number from {least} on")
        settings[setting] = int(written)
    for name, setting in _FLAGS.items():
        if (written := metadata.scalar(name)) is not None:
            settings[setting] = written.lower() == "true"
    return settings


def _behavior(behavior: Fields) -> tuple[dict[str, Any], list[str]]:
    """The stabilization windows and the policies; those that are not written keep their defaults."""
    settings: dict[str, Any] = {}
    unused = []
    for direction, name in (("scaleUp", "scale_up"), ("scaleDown", "scale_down")):
        rules = behavior.at(direction)
        if "stabilizationWindowSeconds" in rules:
            window_s = rules.seconds("stabilizationWindowSeconds", 0)
            settings[f"{name}_stabilization_ms"] = window_s * 1000
        if "policies" in rules or "selectPolicy" in rules:
            policies = [dict(one.content) for one in rules.objects("policies")]
            written = {
                "policies": policies or _DEFAULT_POLICIES[direction],
                "selectPolicy": rules.text("selectPolicy", MAX),
            }
            read_scaling_behavior(rules.where, written)
            settings[f"{name}_behavior"] = written
        if "tolerance" in rules:
            unused.append(f"{direction}.tolerance (tolerance_percent is for both directions)")
    return settings, unused
