"""The objects of a manifest file: several YAML documents, as `helm template` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.fields import Fields
from groupstorm.yaml_documents import parse_yaml_stream

#: Output of `helm template` may be large.
MANIFEST_BYTES_MAX = 8 << 20

_NESTED_LISTS_MAX = 5


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
    if "{{" in text and "}}" in text and _is_template(text):
        raise InputError(f"{source}: a Helm template: render it first, `helm template CHART > {source}.out`")
    found: list[KubernetesObject] = []
    for number, document in enumerate(parse_yaml_stream(text, source), start=1):
        if document is not None:
            found += _objects(document, f"{source}: document {number}", _NESTED_LISTS_MAX)
    if not found:
        raise InputError(f"{source}: no Kubernetes object in it: expected apiVersion, kind, metadata, spec")
    return found


def _is_template(text: str) -> bool:
    """Whether a line is one of Go's template language, which YAML does not know."""
    return any(line.lstrip().startswith(("{{-", "{{ ", "{{/")) for line in text.splitlines())


def _objects(document: Any, where: str, deeper: int) -> Iterator[KubernetesObject]:
    fields = Fields(where, document)
    kind = " ".join(fields.text("kind").split())
    if not kind:
        raise InputError(f"{where}: kind: missing: expected a Kubernetes object")
    if kind.endswith("List") and "items" in fields and deeper:
        for item in fields.objects("items"):
            yield from _objects(item.content, item.where, deeper - 1)
        return
    metadata = fields.at("metadata")
    name = " ".join((metadata.scalar("name") or metadata.scalar("generateName") or "?").split())
    group = fields.text("apiVersion").rpartition("/")[0]
    named = Fields(f"{where} ({kind} {name})", document)
    yield KubernetesObject(kind, name, metadata.scalar("namespace") or "", group, named)
