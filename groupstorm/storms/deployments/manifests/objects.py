"""The objects of a manifest file, their fields with types and places for errors, and its workloads.

A file may have several YAML documents, as `helm template` prints them. Deployments, StatefulSets and their
disruption budgets have Kubernetes' defaults.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import PodCount, parse_pod_count
from groupstorm.storms.scenario.setting_names import MAX_MEMBERS
from groupstorm.yaml_documents import parse_yaml_stream

#: Kubernetes' numbers have 32 bits; a scenario's times are milliseconds.
SECONDS_MAX = 10 * 24 * 3600
INT32_MAX = 2**31 - 1


class Fields:
    """A mapping of a manifest. ``where``: its place: file, object, path. A null counts as no value."""

    def __init__(self, where: str, content: Any) -> None:
        self.where = where
        if not isinstance(content, Mapping):
            raise InputError(f"{where}: {_shown(content)}: expected names with values")
        self.content: Mapping[Any, Any] = content

    def __contains__(self, name: str) -> bool:
        return self.content.get(name) is not None

    def names(self) -> Iterator[str]:
        return (str(name) for name in self.content)

    def at(self, *path: str) -> Fields:
        """The mapping at ``path``, empty if it is not there."""
        found = self
        for name in path:
            found = Fields(f"{found.where}.{name}", {} if name not in found else found.content[name])
        return found

    def objects(self, name: str) -> list[Fields]:
        """The mappings of a list, empty if it is not there."""
        return [Fields(f"{self.where}.{name}[{at}]", one) for at, one in enumerate(self._list(name))]

    def texts(self, name: str) -> list[str]:
        """The texts of a list; numbers and flags as texts."""
        return [str(one) for one in self._list(name) if isinstance(one, str | int | float)]

    def _list(self, name: str) -> list[Any]:
        value = self.content.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self.content.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def scalar(self, name: str) -> str | None:
        """A text, number or flag as a text: flags as YAML writes them."""
        value = self.content.get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, str | int | float) else None

    def whole(self, name: str, default: int, least: int = 0, most: int = INT32_MAX) -> int:
        value = self.content.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default: int) -> int:
        return self.whole(name, default, 0, SECONDS_MAX)

    def pods(self, name: str, default: PodCount) -> PodCount:
        value = self.content.get(name)
        if value is None:
            return default
        count = parse_pod_count(value)
        if count is None or count.number > INT32_MAX:
            raise self._wrong(name, "a number of pods or a percentage like 25%")
        return count

    def _wrong(self, name: str, expected: str) -> InputError:
        return InputError(f"{self.where}.{name}: {_shown(self.content.get(name))}: expected {expected}")


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


#: Output of `helm template` may be large.
MANIFEST_BYTES_MAX = 8 << 20

_NESTED_LISTS_MAX = 5

#: A line of Go's template language, which YAML does not know, or a value of a chart. Others write {{ }}, too.
_TEMPLATE = re.compile(r"^\s*\{\{[-/ ]|\{\{[^}]*\.(?:Values|Release|Chart)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KubernetesObject:
    """One object: ``group`` is its API group (apps, autoscaling, keda.sh)."""

    kind: str
    name: str
    namespace: str
    group: str
    fields: Fields

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_objects(text: str, source: str) -> list[KubernetesObject]:
    """All objects of a file; a List's items count as objects. Raises InputError."""
    if _TEMPLATE.search(text):
        raise _rendered_first(source)
    found: list[KubernetesObject] = []
    try:
        for number, document in enumerate(parse_yaml_stream(text, source), start=1):
            if document is not None:
                found += _objects(document, f"{source}: document {number}", _NESTED_LISTS_MAX)
    except InputError as error:
        raise _rendered_first(source) if "{{" in text else error from None
    if not found:
        raise InputError(f"{source}: no Kubernetes object in it: expected apiVersion, kind, metadata, spec")
    return found


#: The way from a Docker Compose file to an answer.
_COMPOSE = (
    "give the service that consumes as a Deployment, with deploy.replicas as its replicas, stop_grace_period "
    "as its terminationGracePeriodSeconds, and update_config.parallelism as its maxSurge (start-first) or as "
    "its maxUnavailable (stop-first)"
)


def _rendered_first(source: str) -> InputError:
    return InputError(
        f"{source}: a Helm template: render it first, `helm template CHART | groupstorm rollout -`"
    )


def _objects(document: Any, where: str, deeper: int) -> Iterator[KubernetesObject]:
    fields = Fields(where, document)
    kind = " ".join(fields.text("kind").split())
    if not kind and "services" in fields:
        raise InputError(f"{where}: a Docker Compose file: {_COMPOSE}")
    if not kind:
        raise InputError(
            f"{where}: kind: missing: expected a Kubernetes object; values of a Helm chart become some with "
            "`helm template CHART | groupstorm rollout -`"
        )
    if kind.endswith("List") and "items" in fields and deeper:
        for item in fields.objects("items"):
            yield from _objects(item.content, item.where, deeper - 1)
        return
    metadata = fields.at("metadata")
    name = " ".join((metadata.scalar("name") or metadata.scalar("generateName") or "?").split())
    group = fields.text("apiVersion").rpartition("/")[0]
    named = Fields(f"{where} ({kind} {name})", document)
    yield KubernetesObject(kind, name, metadata.scalar("namespace") or "", group, named)


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
_SLEEP = re.compile(r"\bsleep\s+(\d{1,5}(?:\.\d+)?)([smh]?)(?![\w.])")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600}
#: A command that does nothing else.
_SLEEPS = re.compile(r"(?:(?:/bin/)?(?:ba)?sh -\w*c )?(?:/bin/)?sleep\s+\d{1,5}(?:\.\d+)?[smh]?\s*;?")


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
        pre_stop_s=max(map(_pre_stop_s, consumers)),
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
            yield "lifecycle.preStop.httpGet (nobody knows how long it takes: --set pre_stop_ms=10s)"
        command = " ".join(lifecycle.at("preStop", "exec").texts("command"))
        if command and not _SLEEPS.fullmatch(command):
            yield "lifecycle.preStop.exec (only a sleep in it is counted: --set pre_stop_ms=10s)"
        if "readinessProbe" in container and "startupProbe" in container:
            yield "startupProbe (the readiness probe decides)"


def _pre_stop_s(container: Fields) -> int:
    """The sleep of the preStop hook: Kubernetes sends SIGTERM behind it."""
    hook = container.at("lifecycle", "preStop")
    if "sleep" in hook:
        return hook.at("sleep").seconds("seconds", 0)
    command = " ".join(hook.at("exec").texts("command"))
    return round(sum(float(number) * _UNITS_S[unit] for number, unit in _SLEEP.findall(command)))


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
