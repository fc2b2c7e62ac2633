"""Names for the topic ids that brokers log and write in place of names (KIP-848)."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from groupstorm.imports.observation import Observation

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
