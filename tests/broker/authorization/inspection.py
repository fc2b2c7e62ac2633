"""Probes of the APIs that describe a cluster to tools: who may ask, and what others are told.

What depends on the broker (sizes, folders, offsets of the metadata log) is asked for without the right alone.
"""

from __future__ import annotations

from tests.broker import wire
from tests.broker.authorization.playing import Probe

_NOTHING: list[str] = []
_TOO_LITTLE = [_NOTHING, ["DESCRIBE TOPIC *", "ALTER_CONFIGS TOPIC *"]]
_DESCRIBING = [*_TOO_LITTLE, ["DESCRIBE CLUSTER"]]
_ALTERING = [*_TOO_LITTLE, ["DESCRIBE CLUSTER"], ["ALTER CLUSTER"]]
_METADATA = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
_FEATURE = {"feature": "foo", "max_version_level": 1, "upgrade_type": 1, "allow_downgrade": False}
_TARGETS = [
    {"partition_index": 0, "replicas": (1,)},
    {"partition_index": 1, "replicas": (7,)},
    {"partition_index": 9, "replicas": (1,)},
]
_ELECTED = [{"topic": "orders", "partitions": (0, 9)}, {"topic": "nowhere", "partitions": (0,)}]
_PRODUCERS = [{"name": name, "partition_indexes": (0, 9)} for name in ("hidden", "nowhere")]
_FILTERS = {
    "state_filters": ("Ongoing", "Sleeping"),
    "producer_id_filters": (),
    "duration_filter": -1,
    "transactional_id_pattern": None,
}

PROBES = [
    Probe("describe log directories", wire.DESCRIBE_LOG_DIRS, (1, 2, 3, 4), {"topics": None}, _TOO_LITTLE),
    Probe("elect leaders", wire.ELECT_LEADERS, (0, 1, 2),
          {"election_type": 0, "topic_partitions": _ELECTED, "timeout": 10_000}, _ALTERING),
    Probe("reassign partitions", wire.ALTER_REASSIGNMENTS, (0, 1),
          {"topics": [{"name": "hidden", "partitions": _TARGETS[:1]},
                      {"name": "orders", "partitions": _TARGETS}]}, _ALTERING),
    Probe("list reassignments", wire.LIST_REASSIGNMENTS, (0,), {"topics": None}, _DESCRIBING),
    Probe("describe the quorum", wire.DESCRIBE_QUORUM, (0, 1, 2), {"topics": _METADATA}, _TOO_LITTLE),
    Probe("update features", wire.UPDATE_FEATURES, (0, 1, 2),
          {"feature_updates": [_FEATURE], "validate_only": True}, _ALTERING),
    Probe("list resources", wire.LIST_CONFIG_RESOURCES, (0, 1), {"resource_types": (4,)}, _DESCRIBING),
    Probe("describe producers", wire.DESCRIBE_PRODUCERS, (0,), {"topics": _PRODUCERS},
          [_NOTHING, ["DESCRIBE TOPIC *"], ["READ TOPIC hidden"], ["READ TOPIC *"]]),
    Probe("describe transactions", wire.DESCRIBE_TRANSACTIONS, (0,), {"transactional_ids": ("nobody", "")},
          [_NOTHING, ["DESCRIBE TRANSACTIONAL_ID nobody"], ["DESCRIBE TRANSACTIONAL_ID *"]]),
    Probe("list transactions", wire.LIST_TRANSACTIONS, (0, 1, 2), _FILTERS, _TOO_LITTLE),
]  # fmt: skip
