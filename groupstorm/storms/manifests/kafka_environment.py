"""Kafka settings in the environment and the arguments of a container, in spellings that are well known.

A property such as `session.timeout.ms` is found as itself, as KAFKA_SESSION_TIMEOUT_MS (also with CONSUMER or
KAFKA_CONSUMER in front), and as Spring's `spring.kafka.consumer...` in relaxed binding. Values that come from
Secrets, or from ConfigMaps that are not in the file, are not known: only that there are some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupstorm.storms.manifests.fields import Fields
from groupstorm.storms.scenario.group_protocol_settings import GROUP_PROTOCOL
from groupstorm.storms.scenario.settings import BY_NAME

#: A client's property, and the setting of a scenario that it is; None: only said, or asked about.
PROPERTIES: Mapping[str, str | None] = {
    "group.id": None,
    "topic": None,
    "topics": None,
    "group.protocol": GROUP_PROTOCOL,
    "group.remote.assignor": "group.remote.assignor",
    "group.instance.id": "group.instance.id",
    "partition.assignment.strategy": "partition.assignment.strategy",
    "session.timeout.ms": "session.timeout.ms",
    "heartbeat.interval.ms": "heartbeat.interval.ms",
    "max.poll.interval.ms": "max.poll.interval.ms",
    "max.poll.records": "max.poll.records",
    "request.timeout.ms": "request.timeout.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
    "enable.auto.commit": "enable.auto.commit",
    "auto.commit.interval.ms": "auto.commit.interval.ms",
}
#: Spring's own names of some of them (spring.kafka.consumer.*), dashes left out.
_SPRING = {
    "heartbeatinterval": "heartbeat.interval.ms",
    "autocommitinterval": "auto.commit.interval.ms",
    "enableautocommit": "enable.auto.commit",
    "maxpollrecords": "max.poll.records",
    "maxpollinterval": "max.poll.interval.ms",
    "groupid": "group.id",
}
_PREFIXES = (
    "spring.kafka.consumer.properties.", "spring.kafka.properties.", "spring.kafka.consumer.",
    "kafka.consumer.", "consumer.", "kafka.", "",
)  # fmt: skip
#: Without a prefix these words mean something else in other programs.
_NEED_PREFIX = frozenset({"topic", "topics", "request.timeout.ms"})
_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_POD_NAME = re.compile(r"\$\((?:[A-Z_]*POD_?NAME|HOSTNAME)\)|\$\{?(?:[A-Z_]*POD_?NAME|HOSTNAME)\}?")
_ARGUMENT = re.compile(r"(?:--|-D)([A-Za-z][\w.\-]*)=(\S+)")
_DURATION = re.compile(r"(\d+)\s*(ms|s|m)?", re.IGNORECASE)
_UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000}

#: The value of an environment variable that holds the pod's name.
POD_NAME = "$(POD_NAME)"


class Found(NamedTuple):
    """A Kafka property, its value as written, where it stands, and the ConfigMap that holds it.

    ``value`` None: the manifests do not have it.
    """

    property: str
    value: str | None
    where: str
    config_map: str | None = None


def property_named(name: str) -> str | None:
    """The Kafka property that a variable or an argument of this name sets; None for any other."""
    dotted = name.lower().replace("_", ".")
    for prefix in _PREFIXES:
        if not dotted.startswith(prefix):
            continue
        rest = dotted[len(prefix) :]
        squeezed = rest.replace("-", "").replace(".", "")
        if prefix.startswith("spring.kafka.consumer") and squeezed in _SPRING:
            return _SPRING[squeezed]
        plain = rest.replace("-", ".")
        if plain in ("consumer.group", "consumer.group.id", "group"):
            plain = "group.id"
        if plain in PROPERTIES and (prefix or plain not in _NEED_PREFIX):
            return plain
    return None


def kafka_properties(container: Fields, config_maps: Mapping[str, Mapping[str, str]]) -> list[Found]:
    """The Kafka properties of a container, the last of several values for one."""
    found: dict[str, Found] = {}
    for name, value, where, config_map in (*_environment(container, config_maps), *_arguments(container)):
        named = property_named(name)
        if named is not None:
            found[named] = Found(named, value, where, config_map)
    return list(found.values())


#: Name, value (None: not in the manifests), place and ConfigMap.
_Variable = tuple[str, str | None, str, str | None]


def _environment(container: Fields, config_maps: Mapping[str, Mapping[str, str]]) -> Iterator[_Variable]:
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
            if name in ("JAVA_TOOL_OPTIONS", "JAVA_OPTS", "JDK_JAVA_OPTIONS"):
                for key, given in _ARGUMENT.findall(value):
                    yield key, given, f"env {name}: -D{key}", None
            continue
        origin = variable.at("valueFrom")
        if origin.at("fieldRef").text("fieldPath") == "metadata.name":
            yield name, POD_NAME, f"env {name}", None
        config_map = origin.at("configMapKeyRef").text("name")
        referred = config_maps.get(config_map, {}).get(origin.at("configMapKeyRef").text("key"))
        if referred is not None:
            yield name, referred, f"env {name}, from ConfigMap {config_map}", config_map
        elif config_map:
            yield name, None, f"env {name}, from ConfigMap {config_map}", None
        elif secret := origin.at("secretKeyRef").text("name"):
            yield name, None, f"env {name}, from Secret {secret}", None


def _arguments(container: Fields) -> Iterator[_Variable]:
    for field in ("command", "args"):
        for key, value in _ARGUMENT.findall(" ".join(container.texts(field))):
            yield key, value, f"{field}: {key}", None


def setting_value(found: Found) -> Any | None:
    """The value as a scenario's setting has it; None if it is not understood, or not known."""
    text = (found.value or "").strip()
    if found.property in (GROUP_PROTOCOL, "group.remote.assignor"):
        return text.lower() if text.lower() in BY_NAME[found.property].allowed else None
    if found.property == "partition.assignment.strategy":
        names = [part.strip().rpartition(".")[2] for part in text.strip("[]").split(",")]
        known = [_ASSIGNORS.get(name, name if name in _ASSIGNORS.values() else None) for name in names]
        return known if known and all(known) else None
    if found.property == "group.instance.id":
        return "podname" if _POD_NAME.search(text) else None
    if found.property == "enable.auto.commit":
        return {"true": True, "false": False}.get(text.lower())
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    return int(match[1]) * _UNITS_MS[(match[2] or "").lower()]
