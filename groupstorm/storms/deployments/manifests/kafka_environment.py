"""Kafka settings in the files, the environment and the arguments of a container.

Values that come from Secrets, or from ConfigMaps that are not in the file, are not known: only that there are
some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from groupstorm.assignors import KAFKAS, protocol_name
from groupstorm.problems import InputError
from groupstorm.storms.deployments.manifests.objects import Fields
from groupstorm.storms.deployments.manifests.property_names import (
    ACTIVE_PROFILES,
    APPLICATION_ID,
    CHANNELS,
    LEAVE_GROUP,
    OF_CONNECTIONS,
    OF_CONSUMERS,
    OF_SHARES,
    SPRING_RANKS,
    SPRING_STREAMS,
    ConfigMaps,
    file_settings,
    filled_in,
    flattened,
    mounted_files,
    passed_by,
    property_named,
    relaxed,
    resembled,
)
from groupstorm.storms.scenario.settings import BY_NAME
from groupstorm.yaml_documents import parse_yaml

#: The pod's name, as Kubernetes, a shell or Spring puts it in.
_POD_NAME = re.compile(r"<metadata\.name>|\$\{?(?:[A-Z_]*POD_?NAME|HOSTNAME)\}?|\$\(hostname\)")
#: A reference as Kubernetes knows it, or its escape: $$.
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
#: An argument of an application, of Java, of Kafka's console consumer, or of kcat.
_ARGUMENT = re.compile(
    r"""(?:--(?:consumer-)?property[= ]|-X ?|-D|--)["']?([A-Za-z][\w.\-]*)[= ]["']?(?!-)([^\s"']+)"""
)
_DURATION = re.compile(r"(\d+)\s*(ms|s|m)?", re.IGNORECASE)
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000}

#: Stands for the pod's name in the value of a variable.
POD_NAME = "<metadata.name>"
#: Fields whose value is as stable as the pod's name, and as unique.
_LIKE_THE_NAME = frozenset(
    {
        "metadata.name",
        "metadata.labels['statefulset.kubernetes.io/pod-name']",
        "metadata.labels['apps.kubernetes.io/pod-index']",
    }
)


class Found(NamedTuple):
    """A Kafka property, its value, where it stands, the ConfigMap that holds it, and the name that sets it.

    ``value`` None: the manifests do not have it.
    """

    property: str
    value: str | None
    where: str
    config_map: str | None
    name: str


class Application(NamedTuple):
    """The Kafka properties of a container, what may set more of them but cannot be read, properties that no
    setting has, and the ConfigMaps that hold any of them."""

    properties: list[Found]
    unseen: list[str]
    unused: list[str]
    config_maps: set[str | None]


def kafka_properties(pod: Fields, container: Fields, config_maps: ConfigMaps) -> Application:
    """The Kafka properties of a container; of several values for one the one that the application takes."""
    environment = list(_environment(container, config_maps))
    elsewhere = list(_unknown_maps(container, config_maps))
    arguments = list(_arguments(container, environment, not elsewhere))
    json, bad_json = _spring_json(environment)
    given = [*environment, *json, *arguments]
    files, unseen = _from_files(pod, container, config_maps, given)
    # Spring's listeners and its Kafka Streams application have properties of their own
    found: dict[tuple[str, bool], tuple[int, Found]] = {}
    unused: dict[str, None] = {}
    maps: set[str | None] = set()
    for name, value, where, config_map in (*files, *given):
        named = property_named(name)
        if named is None:
            if (alike := resembled(name)) is not None:
                unused[f"{name} ({where}: if it sets {alike}, give it with --set {alike}=VALUE)"] = None
            elif OF_CONSUMERS.match(name) and not OF_CONNECTIONS.search(name):
                unused[f"{name} ({where}: no setting has it)"] = None
                maps.add(config_map)
            continue
        maps.add(config_map)
        property_name, prefix = named
        if (reason := passed_by(named, name, value)) is not None:
            unused[f"{name}={value} ({where}: {reason})"] = None
            if prefix == SPRING_STREAMS:  # the application has a name in any case
                unnamed = Found(APPLICATION_ID, None, where, config_map, name)
                found.setdefault((APPLICATION_ID, False), (-1, unnamed))
            continue
        key = property_name, prefix.startswith(SPRING_STREAMS)
        rank = SPRING_RANKS.get(prefix, 0)
        if (other := _another_consumers(found.get(key), name, value, rank)) is not None:
            why = f"the figures are of one consumer, with {name}={value}"
            unused[f"{other.name}={other.value} ({why})"] = None
        if key not in found or rank >= found[key][0]:
            found[key] = rank, Found(property_name, value, where, config_map, name)
    properties = [found[key][1] for key in sorted(found, key=lambda key: key[1])]
    return Application(properties, [*elsewhere, *unseen, *bad_json], [*unused], maps)


def _another_consumers(
    known: tuple[int, Found] | None, name: str, value: str | None, rank: int
) -> Found | None:
    """The property as it was found before, if that is another channel's or binding's with another value.

    So is another group.id under an application's own names.
    """
    if known is None or relaxed(known[1].name) == relaxed(name) or known[1].value == value:
        return None
    is_channels = CHANNELS.match(known[1].name) and CHANNELS.match(name)
    is_groups = known[1].property == "group.id" and known[0] == rank == 0
    return known[1] if is_channels or is_groups else None


def _unknown_maps(container: Fields, config_maps: ConfigMaps) -> Iterator[str]:
    for source in container.objects("envFrom"):
        for kind, reference in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
            name = source.at(reference).text("name")
            if name and (kind == "Secret" or name not in config_maps):
                yield f"what {kind} {name} sets (envFrom)"


#: Name, value (None: not in the manifests), place and ConfigMap.
_Variable = tuple[str, str | None, str, str | None]


def _environment(container: Fields, config_maps: ConfigMaps) -> Iterator[_Variable]:
    """The variables as the container gets them.

    Kubernetes puts variables into `env[].value` only, and into it those only that stand before it or come
    through envFrom. What a ConfigMap holds stays as it is written (kubernetes#69113).
    """
    defined: dict[str, str | None] = {}
    is_all = not any(_unknown_maps(container, config_maps))
    for name, value, where, config_map in _written(container, config_maps):
        held = value if config_map is not None else expanded(value, defined, is_all)
        defined[name] = held
        yield name, held, where, config_map
        if held is not None and name in ("JAVA_TOOL_OPTIONS", "JAVA_OPTS", "JDK_JAVA_OPTIONS"):
            for key, given in _ARGUMENT.findall(held):
                yield key, given, f"env {name}: -D{key}", None


def expanded(value: str | None, defined: Mapping[str, str | None], is_all: bool) -> str | None:
    """The value with $(NAME) put in as Kubernetes does it: one that is not ``defined`` stays literal.

    None if the value of such a variable is not in the manifests, or if there may be others (``is_all``).
    """
    found: dict[str, str | None] = {"$$": "$"}
    for reference in _REFERENCE.finditer(value or ""):
        found.setdefault(reference[0], defined.get(reference[1], reference[0] if is_all else None))
    if value is None or None in found.values():
        return None
    return _REFERENCE.sub(lambda reference: found[reference[0]] or "", value)


def _written(container: Fields, config_maps: ConfigMaps) -> Iterator[_Variable]:
    for source in container.objects("envFrom"):
        config_map = source.at("configMapRef").text("name")
        prefix = source.text("prefix")
        for key, held in config_maps.get(config_map, {}).items():
            yield prefix + key, held, f"ConfigMap {config_map}: {key}", config_map
    for variable in container.objects("env"):
        name = variable.scalar("name") or ""
        value = variable.scalar("value")
        if value is not None:
            yield name, value, f"env {name}", None
            continue
        origin = variable.at("valueFrom")
        if field := origin.at("fieldRef").text("fieldPath"):
            yield name, POD_NAME if field in _LIKE_THE_NAME else f"<{field}>", f"env {name}", None
        config_map = origin.at("configMapKeyRef").text("name")
        referred = config_maps.get(config_map, {}).get(origin.at("configMapKeyRef").text("key"))
        if referred is not None:
            yield name, referred, f"env {name}, from ConfigMap {config_map}", config_map
        elif config_map:
            yield name, None, f"env {name}, from ConfigMap {config_map}", None
        elif secret := origin.at("secretKeyRef").text("name"):
            yield name, None, f"env {name}, from Secret {secret}", None


def _spring_json(environment: Iterable[_Variable]) -> tuple[list[_Variable], list[str]]:
    """The settings of SPRING_APPLICATION_JSON, and that it cannot be read."""
    found: list[_Variable] = []
    for name, value, where, config_map in environment:
        if name.lower().replace("_", ".") != "spring.application.json":
            continue
        try:
            content = parse_yaml(value or "", where)  # JSON is YAML
        except InputError as problem:
            return [], [f"what {problem}"]
        found += [(key, held, f"{where}: {key}", config_map) for key, held in flattened(content)]
    return found, []


def _from_files(
    pod: Fields, container: Fields, config_maps: ConfigMaps, given: Sequence[_Variable]
) -> tuple[list[_Variable], list[str]]:
    """The settings of the mounted files, and the files that cannot be read."""
    variables = {relaxed(name): value for name, value, _, _ in given}
    active = variables.get(relaxed(ACTIVE_PROFILES)) or ""
    found: list[tuple[str, str, str, str]] = []
    unseen: list[str] = []
    settings: dict[str, str] = {}

    def look_up(name: str) -> str | None:
        if relaxed(name) in variables:
            return variables[relaxed(name)]
        return settings.get(name, POD_NAME if _POD_NAME.fullmatch(f"${{{name}}}") else None)

    def profiles() -> frozenset[str]:
        named = active or filled_in(settings.get(ACTIVE_PROFILES, ""), look_up) or "default"
        return frozenset(part.strip() for part in named.split(","))

    for file in mounted_files(pod, container, config_maps):
        if file.text is None:
            unseen.append(f"what the files of ConfigMap {file.config_map} set")
            continue
        try:
            settings.update(file_settings(file, profiles()))
            read = file_settings(file, profiles())  # of which the file itself may have named some
        except InputError as problem:
            unseen.append(f"what {problem}")
            continue
        settings.update(read)
        # beside Kafka's own name for its brokers, application.id is Kafka Streams', too
        own = {APPLICATION_ID: f"kafka.{APPLICATION_ID}"} if "bootstrap.servers" in dict(read) else {}
        found += [(own.get(name, name), value, f"{file}: {name}", file.config_map) for name, value in read]

    filled: list[_Variable] = [
        (name, filled_in(value, look_up), where, config_map) for name, value, where, config_map in found
    ]
    return filled, unseen


def _arguments(container: Fields, environment: Iterable[_Variable], is_all: bool) -> Iterator[_Variable]:
    defined = {name: value for name, value, _, _ in environment}
    for field in ("command", "args"):
        for key, value in _ARGUMENT.findall(" ".join(container.texts(field))):
            yield key, expanded(value, defined, is_all), f"{field}: {key}", None


def shared_instance(found: Found) -> str | None:
    """The group.instance.id that all pods have; None if it is not the same for all, or not known."""
    text = (found.value or "").strip()
    differs = setting_value(found) is not None or re.search(r"<(?:metadata\.uid|status\.podIPs?)>", text)
    return text if found.property == "group.instance.id" and text and not differs else None


def setting_value(found: Found) -> Any | None:
    """The value as a scenario's setting has it; None if it is not understood, or not known."""
    text = (found.value or "").strip()
    if found.property in ("group.protocol", "group.remote.assignor", "auto.offset.reset", *OF_SHARES):
        return text.lower() if text.lower() in BY_NAME[found.property].allowed else None
    if found.property == "partition.assignment.strategy":
        names = [protocol_name(part.strip()) for part in text.strip("[]").split(",")]
        return names if KAFKAS.issuperset(names) else None
    if found.property == "group.instance.id":
        return "podname" if _POD_NAME.search(text) else None
    if found.property in ("enable.auto.commit", LEAVE_GROUP):
        return {"true": True, "false": False}.get(text.lower())
    return milliseconds(text)


def milliseconds(text: str) -> int | None:
    """A duration as Kafka's clients or Spring have it; None if it is not understood."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * _UNITS_MS[(match[2] or "").lower()]
