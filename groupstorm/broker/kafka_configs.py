"""The configurations of Kafka, with their types and defaults: `kafka_configs.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from groupstorm.coordinator.config_options import ConfigType

_DOCUMENTATION: Final = "https://kafka.apache.org/44/documentation.html"


class KafkaConfig(NamedTuple):
    """``changes``: whether it can change while the broker runs. ``synonym``: the broker's setting that is its
    default, if it has one."""

    kind: ConfigType
    default: str | None
    changes: bool
    is_sensitive: bool
    synonym: str | None
    #: The place in Kafka's documentation; its sentences are Kafka's own.
    documentation: str


@cache
def kafka_configs(of: str) -> Mapping[str, KafkaConfig]:
    """The configurations of a ``broker``, a ``topic`` or a ``group``, by name."""
    lines = (files("groupstorm.broker") / "kafka_configs.jsonl").read_text("utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return {
        row["name"]: KafkaConfig(
            ConfigType(row["type"]),
            row.get("default"),
            row.get("changes", False),
            row.get("sensitive", False),
            row.get("synonym"),
            f"{_DOCUMENTATION}#{of}configs_{row['name']}",
        )
        for row in rows
        if row["of"] == of
    }
