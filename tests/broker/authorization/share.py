"""Requests of share groups, with and without the rights that they need; Kafka 4.4.0 has answered them."""

from __future__ import annotations

from tests.broker import wire
from tests.broker.asking import share_beat
from tests.broker.authorization.playing import Probe

_GROUP = "sharing"
_READ = f"READ GROUP {_GROUP}"
_NOTHING: tuple[str, ...] = ()
_SESSION = {"group_id": _GROUP, "member_id": "member"}
#: A fetch that wants nothing is answered at once.
_NO_RECORDS = {
    "max_wait": 0,
    "min_bytes": 0,
    "max_bytes": 1_000,
    "max_records": 0,
    "batch_size": 1,
    "topics": [{"topic_id": "orders", "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}],
}

PROBES = [
    Probe("join a share group", wire.SHARE_GROUP_HEARTBEAT, (1,), share_beat(_GROUP, "member", 0, "orders"),
          [_NOTHING, ["DESCRIBE TOPIC *"], [_READ], [_READ, "DESCRIBE TOPIC orders"]]),
    Probe("describe a share group", wire.SHARE_GROUP_DESCRIBE, (1,),
          {"group_ids": (_GROUP, "none"), "include_authorized_operations": True},
          [_NOTHING, ["DESCRIBE GROUP none"], [f"DESCRIBE GROUP {_GROUP}", "DESCRIBE TOPIC orders"],
           [_READ, "READ TOPIC *"]]),
    Probe("fetch records of a share group", wire.SHARE_FETCH, (1, 2),
          {**_SESSION, "share_session_epoch": 0, **_NO_RECORDS},
          [_NOTHING, ["READ TOPIC *"], [_READ], [_READ, "DESCRIBE TOPIC orders"],
           [_READ, "READ TOPIC orders"]]),
    Probe("acknowledge records of a share group", wire.SHARE_ACKNOWLEDGE, (1, 2),
          {**_SESSION, "share_session_epoch": -1, "topics": []}, [_NOTHING, ["READ TOPIC *"], [_READ]]),
    Probe("describe the offsets of a share group", wire.DESCRIBE_SHARE_OFFSETS, (1,),
          {"groups": [{"group_id": _GROUP, "topics": None},
                      {"group_id": "none", "topics": [{"topic_name": "orders", "partitions": [0]}]}]},
          [_NOTHING, ["DESCRIBE GROUP *"], ["DESCRIBE GROUP none", "DESCRIBE TOPIC orders"],
           ["DESCRIBE GROUP *", "DESCRIBE TOPIC *"]]),
    Probe("alter the offsets of a share group", wire.ALTER_SHARE_OFFSETS, (0,),
          {"group_id": "none",
           "topics": [{"topic_name": "orders", "partitions": [{"partition_index": 0, "start_offset": 0}]}]},
          [_NOTHING, ["READ TOPIC *"], ["READ GROUP none"], ["READ GROUP none", "READ TOPIC orders"]]),
    Probe("delete the offsets of a share group", wire.DELETE_SHARE_OFFSETS, (0,),
          {"group_id": "none", "topics": [{"topic_name": "orders"}]},
          [_NOTHING, ["READ TOPIC *"], ["DELETE GROUP none"], ["DELETE GROUP none", "READ TOPIC orders"]]),
]  # fmt: skip
