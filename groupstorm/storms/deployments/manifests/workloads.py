"""Deployments and StatefulSets, their autoscalers and disruption budgets, with Kubernetes' defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.objects import INT32_MAX, Fields, KubernetesObject
from groupstorm.storms.scenario.deployment_settings import HPA, KEDA
from groupstorm.storms.scenario.quantities import PodCount
from groupstorm.storms.scenario.setting_types import MAX_MEMBERS

WORKLOADS = ("Deployment", "StatefulSet")
ROLLING, RECREATE, ON_DELETE = "RollingUpdate", "Recreate", "OnDelete"

#: Types of KEDA's triggers that read a consumer group's lag.
KAFKA_TRIGGERS = ("kafka", "apache-kafka")

_QUARTER = PodCount(25, is_percentage=True)
_FILE = re.compile(r"(?:/tmp|/var)/[\w./-]+")
_SLEEP = re.compile(r"\bsleep\s+(\d{1,5})\b")


@dataclass(frozen=True, slots=True)
class Probe:
    """A readiness or startup probe; ``file``: the file that its command looks for, if it is a command."""

    kind: str
    initial_delay_s: int
    period_s: int
    successes: int
    file: str | None


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload. ``replicas`` None: the manifest does not say."""

    kind: str
    name: str
    namespace: str
    replicas: int | None
    strategy: str
    max_surge: PodCount
    max_unavailable: PodCount
    partition: int
    min_ready_s: int
    progress_deadline_s: int
    grace_s: int
    pre_stop_s: int
    probe: Probe | None
    labels: dict[str, str]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_workload(found: KubernetesObject) -> Workload:
    """Raises InputError with the field's path."""
    spec = found.fields.at("spec")
    pod = spec.at("template", "spec")
    containers = tuple(pod.objects("containers"))
    if not containers:
        raise InputError(f"{pod.where}.containers: missing: expected a list of containers")
    stateful = found.kind == "StatefulSet"
    strategy = spec.at("updateStrategy" if stateful else "strategy")
    rolling = strategy.at("rollingUpdate")
    kind = strategy.text("type", ROLLING)
    if kind not in (ROLLING, ON_DELETE if stateful else RECREATE):
        expected = f"{ROLLING} or {ON_DELETE if stateful else RECREATE}"
        raise InputError(f"{strategy.where}.type: {kind!r}: expected {expected}")
    labels = spec.at("template", "metadata", "labels")
    return Workload(
        kind=found.kind,
        name=found.name,
        namespace=found.namespace,
        replicas=spec.whole("replicas", 1, 0, MAX_MEMBERS) if "replicas" in spec else None,
        strategy=kind,
        max_surge=PodCount(0) if stateful else rolling.pods("maxSurge", _QUARTER),
        max_unavailable=rolling.pods("maxUnavailable", PodCount(1) if stateful else _QUARTER),
        partition=rolling.whole("partition", 0) if stateful else 0,
        min_ready_s=spec.seconds("minReadySeconds", 0),
        progress_deadline_s=max(1, spec.seconds("progressDeadlineSeconds", 600)),
        grace_s=pod.seconds("terminationGracePeriodSeconds", 30),
        pre_stop_s=max(map(_pre_stop_s, containers)),
        probe=next((probe for one in containers if (probe := _probe(one)) is not None), None),
        labels={name: labels.scalar(name) or "" for name in labels.names()},
    )


def _pre_stop_s(container: Fields) -> int:
    """The sleep of the preStop hook: Kubernetes sends SIGTERM behind it."""
    hook = container.at("lifecycle", "preStop")
    if "sleep" in hook:
        return hook.at("sleep").seconds("seconds", 0)
    command = " ".join(hook.at("exec").texts("command"))
    return sum(int(seconds) for seconds in _SLEEP.findall(command))


def _probe(container: Fields) -> Probe | None:
    """The probe that decides when a new pod is ready: the readiness probe, or else the startup probe."""
    for kind in ("readinessProbe", "startupProbe"):
        if kind in container:
            probe = container.at(kind)
            files = _FILE.findall(" ".join(probe.at("exec").texts("command")))
            return Probe(
                kind,
                probe.seconds("initialDelaySeconds", 0),
                max(1, probe.seconds("periodSeconds", 10)),
                max(1, probe.whole("successThreshold", 1)),
                files[0] if files else None,
            )
    return None


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
