"""Requests of share groups, with and without the rights that they need; Kafka 4.4.0 has answered them."""

from __future__ import annotations

from tests.broker import wire
from tests.broker.authorization.playing import Probe

_GROUP = "sharing"
_READ = f"READ GROUP {_GROUP}"
_NOTHING: tuple[str, ...] = ()

PROBES = [
    Probe(
        "join a share group",
        wire.SHARE_GROUP_HEARTBEAT,
        (1,),
        {
            "group_id": _GROUP,
            "member_id": "member",
            "member_epoch": 0,
            "rack_id": None,
            "subscribed_topic_names": ("orders",),
        },
        [
            _NOTHING,
            ["DESCRIBE TOPIC *"],
            [_READ],
            [_READ, "DESCRIBE TOPIC orders"],
        ],
    ),
    Probe(
        "describe a share group",
        wire.SHARE_GROUP_DESCRIBE,
        (1,),
        {"group_ids": (_GROUP, "none"), "include_authorized_operations": True},
        [
            _NOTHING,
            ["DESCRIBE GROUP none"],
            [f"DESCRIBE GROUP {_GROUP}", "DESCRIBE TOPIC orders"],
            [_READ, "READ TOPIC *"],
        ],
    ),
]
