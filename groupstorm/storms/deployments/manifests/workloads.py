"""Deployments, StatefulSets and their disruption budgets, with Kubernetes' defaults."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.objects import Fields, KubernetesObject
from groupstorm.storms.scenario.quantities import PodCount
from groupstorm.storms.scenario.settings_table import MAX_MEMBERS

WORKLOADS = ("Deployment", "StatefulSet")
ROLLING, RECREATE, ON_DELETE = "RollingUpdate", "Recreate", "OnDelete"

_SCHEDULING = "the time until a pod is scheduled belongs to start_ms"
#: Fields that change a rollout, by the place that has them, and why they are not used.
_UNUSED = {
    "spec": {
        "paused": "Kubernetes replaces nothing before it is resumed: the rollout begins then",
        "podManagementPolicy": "a rolling update goes pod by pod in any case",
    },
    "pod": {
        "initContainers": "their time belongs to start_ms",
        "affinity": _SCHEDULING,
        "topologySpreadConstraints": _SCHEDULING,
    },
    "container": {
        "livenessProbe": "a probe that fails restarts no container",
        "resources": "process_ms says how fast a pod works",
    },
}

_QUARTER = PodCount(25, is_percentage=True)
_FILE = re.compile(r"(?:/tmp|/var)/[\w./-]+")
_SLEEP = re.compile(r"\bsleep\s+(\d{1,5})\b")
#: A command that does nothing else.
_SLEEPS = re.compile(r"(?:(?:/bin/)?(?:ba)?sh -\w*c )?(?:/bin/)?sleep\s+\d{1,5}\s*;?")


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
    """A workload. ``replicas`` None: the manifest does not say. ``container``: the name of the consumer's.

    ``keeps_disk``: a pod that takes the place of another one finds its volume.
    """

    kind: str
    name: str
    namespace: str
    container: str
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
    keeps_disk: bool
    labels: dict[str, str]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_workload(found: KubernetesObject, consuming: Collection[int]) -> Workload:
    """Raises InputError with the field's path.

    ``consuming``: the numbers of the containers that have Kafka settings. The probe is that of one of them,
    if there are any: a sidecar that is ready says nothing about the consumer.
    """
    spec = found.fields.at("spec")
    pod = spec.at("template", "spec")
    containers = tuple(pod.objects("containers"))
    if not containers:
        raise InputError(f"{pod.where}.containers: missing: expected a list of containers")
    consumers = [one for number, one in enumerate(containers) if number in consuming] or containers
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
        container=consumers[0].text("name") or found.name,
        replicas=spec.whole("replicas", 1, 0, MAX_MEMBERS) if "replicas" in spec else None,
        strategy=kind,
        max_surge=PodCount(0) if stateful else rolling.pods("maxSurge", _QUARTER),
        max_unavailable=rolling.pods("maxUnavailable", PodCount(1) if stateful else _QUARTER),
        partition=rolling.whole("partition", 0) if stateful else 0,
        min_ready_s=spec.seconds("minReadySeconds", 0),
        progress_deadline_s=max(1, spec.seconds("progressDeadlineSeconds", 600)),
        grace_s=pod.seconds("terminationGracePeriodSeconds", 30),
        pre_stop_s=max(map(_pre_stop_s, containers)),
        probe=next((probe for one in consumers if (probe := _probe(one)) is not None), None),
        keeps_disk=stateful and any(spec.objects("volumeClaimTemplates")),
        labels={name: labels.scalar(name) or "" for name in labels.names()},
        unused=tuple(
            dict.fromkeys([*_named("spec", spec), *_named("pod", pod), *_unused_of_containers(containers)])
        ),
    )


def _named(place: str, fields: Fields) -> list[str]:
    return [f"{name} ({reason})" for name, reason in _UNUSED[place].items() if fields.content.get(name)]


def _unused_of_containers(containers: Sequence[Fields]) -> Iterator[str]:
    for container in containers:
        yield from _named("container", container)
        lifecycle = container.at("lifecycle")
        if "postStart" in lifecycle:
            yield "lifecycle.postStart (its time belongs to start_ms)"
        if "httpGet" in lifecycle.at("preStop"):
            yield "lifecycle.preStop.httpGet (nobody knows how long it takes: --set stop_grace_ms=10s)"
        command = " ".join(lifecycle.at("preStop", "exec").texts("command"))
        if command and not _SLEEPS.fullmatch(command):
            yield "lifecycle.preStop.exec (only a sleep in it is counted: --set stop_grace_ms=10s)"
        if "readinessProbe" in container and "startupProbe" in container:
            yield "startupProbe (the readiness probe decides)"


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


def read_budget(found: KubernetesObject, replicas: int) -> PodCount:
    """The number of ``replicas`` pods that may be missing: maxUnavailable, or all beyond minAvailable."""
    spec = found.fields.at("spec")
    if "minAvailable" in spec:
        least = spec.pods("minAvailable", PodCount(0)).of(replicas, round_up=True)
        return PodCount(max(0, replicas - least))
    return spec.pods("maxUnavailable", PodCount(1))
