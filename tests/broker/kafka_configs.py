"""Asks Kafka which configurations it has, and writes groupstorm/broker/kafka_configs.jsonl:

    python -m tests.broker.kafka_configs HOST:PORT

Of a broker, a topic and a group: name, type, default, whether it can change while the broker runs, whether
it is sensitive, and the broker's setting that is the default. The broker has node.id 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groupstorm.broker import described_configs
from groupstorm.broker.described_configs import ConfigSource
from tests.broker import wire

FILE = Path(described_configs.__file__).with_name("kafka_configs.jsonl")
_TOPIC = "described"
#: Type of a resource, its name in the file, and one such resource.
_RESOURCES = ((2, "topic", _TOPIC), (4, "broker", "1"), (32, "group", "described"))


def rows(client: wire.RawClient) -> Iterator[dict[str, Any]]:
    topic = {"name": _TOPIC, "num_partitions": 1, "replication_factor": 1}
    client.ask(wire.CREATE_TOPICS, 5, topics=(topic,), timeout=wire.milliseconds(10_000))
    for kind, of, name in _RESOURCES:
        asked = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        answer = client.ask(wire.DESCRIBE_CONFIGS, 4, resources=(asked,), include_synonyms=True)
        for config in sorted(answer.results[0].configs, key=lambda config: str(config.name)):
            facts = {"of": of, "name": config.name, **_facts(config, of == "broker")}
            yield {key: value for key, value in facts.items() if value not in (None, False)}


def _facts(config: Any, is_broker: bool) -> dict[str, Any]:
    defaults = [one for one in config.synonyms if one.source == ConfigSource.DEFAULT]
    default = defaults[-1].value if defaults else None
    if not is_broker and not defaults:
        default = config.value
    return {
        "type": config.config_type,
        "default": default,
        "changes": not config.read_only,
        "sensitive": config.is_sensitive,
        "synonym": defaults[-1].name if defaults else None,
    }


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    with wire.RawClient((host, int(port))) as client:
        FILE.write_text("".join(json.dumps(row) + "\n" for row in rows(client)), "utf-8")


if __name__ == "__main__":
    main()
