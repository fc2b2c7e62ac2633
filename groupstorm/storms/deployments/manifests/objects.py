"""The objects of a manifest file and their fields, each read with its type and its place for errors.

A file may have several YAML documents, as `helm template` prints them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.scenario.quantities import PodCount, parse_pod_count
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
