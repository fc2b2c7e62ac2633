"""The content of one line of a log, before it is known how the logs go together; and names for the topic ids
that brokers log and write in place of names (KIP-848)."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

#: The field of an observation whose time is a bound: a `TimeRule`.
TIME_RULE: Final = "time_rule"


#: The field of an observation that names the pod or container whose log the line is of.
POD: Final = "pod"


class TimeRule(NamedTuple):
    """``bound``: "earliest" or "latest", what an observation's time is. ``sentence``: by which rule."""

    bound: str
    sentence: str


class Observation(NamedTuple):
    """``time_us``: since 1970, on the log's own clock as UTC. ``source`` and ``line``: the log, by its
    number, and the line in it. ``fields``: what stood in the template's holes and in the prefix of the
    message: texts, numbers, and lists and dicts of them. Only such values can be put on disk while logs are
    read (`spill`)."""

    time_us: int
    source: int
    line: int
    kind: str
    group: str
    fields: dict[str, Any]


#: Fields that hold partitions.
_PARTITIONS: Final = ("partitions", "revoking")
_UUID_BYTES: Final = 16


def topic_id(text: str) -> UUID | None:
    """A topic id as Kafka prints it (Uuid.toString); None if the text is none."""
    try:
        data = urlsafe_b64decode(f"{text}==")
    except ValueError:  # no Base64, or no ASCII
        return None
    return UUID(bytes=data) if len(data) == _UUID_BYTES else None


def topics_in(one: Observation) -> set[str]:
    """The topics of an observation's partitions: names or ids, as the observation has them."""
    return {
        partition.rpartition("-")[0]
        for name in _PARTITIONS
        if isinstance(one.fields.get(name), list)
        for partition in one.fields[name]
    }


def with_topic_names(one: Observation, names: Mapping[str, str]) -> Observation:
    """The observation with the names of the topics whose ids are known. ``names``: by topic id."""
    if not names:
        return one
    changed: dict[str, Any] = {
        name: _named(one.fields[name], names)
        for name in _PARTITIONS
        if isinstance(one.fields.get(name), list)
    }
    if isinstance(one.fields.get("targets"), dict):
        changed["targets"] = {
            member_id: _named(partitions, names) for member_id, partitions in one.fields["targets"].items()
        }
    return one._replace(fields={**one.fields, **changed}) if changed else one


def _named(partitions: Sequence[str], names: Mapping[str, str]) -> list[str]:
    named = []
    for partition in partitions:
        topic, dash, number = partition.rpartition("-")
        named.append(f"{names.get(topic, topic)}{dash}{number}")
    return named
