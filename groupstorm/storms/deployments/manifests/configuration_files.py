"""Settings in the files that ConfigMaps hold and a container mounts: YAML, JSON, `.properties`.

A nested name counts with dots (`spring.kafka.consumer.group-id`). Spring reads some files and YAML documents
only if a profile is active (`application-prod.yaml`, `spring.config.activate.on-profile`), and puts values in
for `${NAME:default}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from groupstorm.java_properties import parse_java_properties
from groupstorm.storms.deployments.manifests.objects import Fields
from groupstorm.yaml_documents import parse_yaml_stream

_READ = frozenset({".yaml", ".yml", ".json", ".properties"})
#: A name and its value.
Setting = tuple[str, str]
ConfigMaps = Mapping[str, Mapping[str, str]]

_PROFILE_FILE = re.compile(r"application-(?P<profile>.+)")
ACTIVE_PROFILES = "spring.profiles.active"
_ON_PROFILE = ("spring.config.activate.on-profile", "spring.profiles")
_PLACEHOLDER = re.compile(r"\$\{(?P<name>[^{}:]+)(?::(?P<default>[^{}]*))?\}")
#: Placeholders may stand for placeholders, in a circle too.
_REPLACED_MAX = 20
#: The certificate of the cluster, in a ConfigMap that Kubernetes itself makes.
_KUBERNETES_OWN = "kube-root-ca.crt"


class MountedFile(NamedTuple):
    """A file of a ConfigMap. ``name``: as the container sees it; ``text`` None: all of an unknown map."""

    config_map: str
    name: str
    text: str | None

    def __str__(self) -> str:
        return f"ConfigMap {self.config_map}: {self.name}"


def mounted_files(pod: Fields, container: Fields, config_maps: ConfigMaps) -> list[MountedFile]:
    """The files with a known ending, files of Spring's profiles last; all of an unknown ConfigMap as one."""
    mounts = {mount.text("name"): mount.text("subPath") for mount in container.objects("volumeMounts")}
    found = []
    for volume in pod.objects("volumes"):
        name = volume.text("name")
        if name not in mounts:
            continue
        projected = volume.at("projected").objects("sources")
        for source in (volume.at("configMap"), *(one.at("configMap") for one in projected)):
            found += [
                file
                for file in _files(source, config_maps)
                if file.text is None or mounts[name] in ("", file.name)
            ]
    return sorted(found, key=lambda file: _profile(file) is not None)


def _files(source: Fields, config_maps: ConfigMaps) -> Iterator[MountedFile]:
    config_map = source.text("name")
    if not config_map or config_map == _KUBERNETES_OWN:
        return
    items = {item.text("key"): item.text("path") for item in source.objects("items")}
    if config_map not in config_maps:
        if not items or any(_is_read(path) for path in items.values()):
            yield MountedFile(config_map, "", None)
        return
    for key, text in config_maps[config_map].items():
        path = items.get(key, "" if items else key)
        if _is_read(path):
            yield MountedFile(config_map, path, text)


def _is_read(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _READ


def _profile(file: MountedFile) -> str | None:
    match = _PROFILE_FILE.fullmatch(PurePosixPath(file.name).stem)
    return None if match is None else match["profile"]


def file_settings(file: MountedFile, profiles: frozenset[str]) -> list[Setting]:
    """The settings of a file; none if it belongs to a profile that is not active.

    Raises InputError if the file is not what its ending says.
    """
    profile = _profile(file)
    if profile is not None and profile not in profiles:
        return []
    text = file.text or ""
    if file.name.lower().endswith(".properties"):
        documents: Iterable[Any] = [parse_java_properties(text)]
    else:
        documents = parse_yaml_stream(text, str(file))  # JSON is YAML
    found: list[Setting] = []
    for document in documents:
        settings = list(flattened(document))
        named = ",".join(value for name, value in settings if name in _ON_PROFILE)
        wanted = [part.strip() for part in named.split(",") if part.strip()]
        if not wanted or any((part.lstrip("!") in profiles) != part.startswith("!") for part in wanted):
            found += settings
    return found


def flattened(content: Any, name: str = "") -> Iterator[Setting]:
    """Nested names joined by dots; a list of texts and numbers joined by commas."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            # Spring keeps a name with dots whole in brackets: "[session.timeout.ms]"
            plain = str(key).strip("[]")
            yield from flattened(value, f"{name}.{plain}" if name else plain)
    elif isinstance(content, list):
        if all(isinstance(one, str | int | float) for one in content):
            yield name, ",".join(_text(one) for one in content)
    elif content is not None:
        yield name, _text(content)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def filled_in(value: str, look_up: Callable[[str], str | None]) -> str | None:
    """The value with its placeholders replaced; None if one of them has neither a value nor a default."""
    for _ in range(_REPLACED_MAX):
        match = _PLACEHOLDER.search(value)
        if match is None:
            return value
        put_in = look_up(match["name"])
        if put_in is None:
            put_in = match["default"]
        if put_in is None:
            return None
        value = value[: match.start()] + put_in + value[match.end() :]
    return None
