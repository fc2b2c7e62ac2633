"""Requests of streams groups, with and without the rights that they need; Kafka 4.4.0 has answered them."""

from __future__ import annotations

from typing import Any

from tests.broker import wire
from tests.broker.authorization.playing import Probe

_GROUP = "counting"
_READ = f"READ GROUP {_GROUP}"
_NOTHING: tuple[str, ...] = ()


def _join(*sources: str, changelog: str = f"{_GROUP}-counts-changelog") -> dict[str, Any]:
    topic = {"name": changelog, "partitions": 0, "replication_factor": 0}
    subtopology = {"subtopology_id": "0", "source_topics": sources, "state_changelog_topics": [topic]}
    return {
        "group_id": _GROUP,
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout": 30_000,
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "process_id": "process",
        "client_tags": None,
        "task_offsets": None,
        "task_end_offsets": None,
    }


PROBES = [
    Probe("join a streams group with a topic of Kafka's", wire.STREAMS_GROUP_HEARTBEAT, (0, 1),
          _join("orders", "__consumer_offsets"), [_NOTHING, [_READ]]),
    Probe("join a streams group with the name of no topic", wire.STREAMS_GROUP_HEARTBEAT, (0, 1),
          _join("orders", changelog="a/b"), [_NOTHING, [_READ]]),
    Probe("join a streams group", wire.STREAMS_GROUP_HEARTBEAT, (1,), _join("orders"),
          [_NOTHING, ["DESCRIBE TOPIC *"], [_READ], [_READ, "DESCRIBE TOPIC orders"],
           [_READ, "DESCRIBE TOPIC *"], [_READ, "DESCRIBE TOPIC *", f"CREATE TOPIC {_GROUP}"],
           [_READ, "DESCRIBE TOPIC *", f"CREATE TOPIC {_GROUP}*"]]),
    Probe("describe a streams group", wire.STREAMS_GROUP_DESCRIBE, (0, 1),
          {"group_ids": (_GROUP, "none"), "include_authorized_operations": True},
          [_NOTHING, ["DESCRIBE GROUP none"], [f"DESCRIBE GROUP {_GROUP}", "DESCRIBE TOPIC orders"],
           [_READ, "READ TOPIC *"]]),
    Probe("describe a topology", wire.TOPOLOGY_DESCRIPTION_UPDATE, (0,),
          {"group_id": _GROUP, "member_id": "member",
           "topology_description": {"subtopologies": (), "global_stores": ()}},
          [_NOTHING, [f"DESCRIBE GROUP {_GROUP}"], [_READ]]),
]  # fmt: skip
