"""Names for the topic ids that brokers log and write in place of names (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from groupstorm.imports.observation import Observation

#: Fields that hold partitions.
_PARTITIONS: Final = ("partitions", "revoking")


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
