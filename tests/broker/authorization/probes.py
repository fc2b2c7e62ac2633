"""A request of each API, with and without the rights that it needs.

There are the topics `orders` and `hidden`, and no topic `nowhere`. The group `g` has committed offsets for
both topics, and `modern` is a consumer group whose member has the partitions of `orders`.
"""

from __future__ import annotations

from typing import Any

from tests.broker import wire
from tests.broker.asking import acl, acl_filter, consumer_join, join_fields
from tests.broker.authorization.playing import Probe

TOPICS = {"orders": 2, "hidden": 1}
NAMES = ("orders", "hidden", "nowhere")
_NOTHING: tuple[str, ...] = ()


def _topics(field: str, partitions: str, inner: dict[str, Any], names: tuple[str, ...] = NAMES) -> Any:
    return [{field: name, "topic_id": name, partitions: [inner]} for name in names]


def _produce(records: bytes, names: tuple[str, ...] = ("orders", "nowhere"), **more: Any) -> dict[str, Any]:
    data = _topics("name", "partition_data", {"index": 0, "records": records}, names)
    return {"transactional_id": None, "acks": -1, "timeout": 1000, "topic_data": data, **more}


def _fetch(**more: Any) -> dict[str, Any]:
    asked = {"partition": 0, "fetch_offset": 0, "current_leader_epoch": -1, "partition_max_bytes": 1000}
    topics = _topics("topic", "partitions", asked)
    return {"replica_id": -1, "max_wait": 0, "min_bytes": 1, "max_bytes": 1000, "topics": topics, **more}


def _commit(**more: Any) -> dict[str, Any]:
    asked = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = _topics("name", "partitions", asked)
    who = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return {**who, **more}


def _offset_fetch(topics: Any) -> dict[str, Any]:
    return {
        "group_id": "g",
        "topics": topics,
        "groups": [{"group_id": "g", "topics": topics, "member_epoch": -1}],
    }


_OFFSETS = [{"name": name, "topic_id": name, "partition_indexes": [0]} for name in NAMES]
_TXN = {"transactional_id": "t", "producer_id": 77, "producer_epoch": 0}
_OLD_TXN = {f"v3_and_below_{name}": value for name, value in _TXN.items()}
_JOIN = join_fields("joined")


def heartbeat(group: str, *topics: str, **more: Any) -> dict[str, Any]:
    """A member joins a consumer group."""
    return consumer_join(group, f"member of {group}", *topics, **more)


def _resources(*named: tuple[int, str], **more: Any) -> dict[str, Any]:
    resources = [{"resource_type": kind, "resource_name": name, **more} for kind, name in named]
    return {"resources": resources, "include_synonyms": False, "validate_only": True}


_CONFIGURED = ((2, "orders"), (2, "nowhere"), (4, "1"), (32, "g"))
_CONFIG_RIGHTS = [
    _NOTHING,
    ["DESCRIBE TOPIC orders", "READ GROUP g", "DESCRIBE CLUSTER"],
    ["DESCRIBE_CONFIGS TOPIC orders"],
    ["ALTER_CONFIGS TOPIC orders"],
    ["DESCRIBE_CONFIGS CLUSTER"],
    ["ALTER_CONFIGS CLUSTER"],
    ["DESCRIBE_CONFIGS GROUP g"],
    ["ALTER_CONFIGS GROUP g"],
]
_ON_GROUP = [_NOTHING, ["DESCRIBE GROUP joined"], ["READ GROUP joined"], ["DELETE GROUP joined"]]
_ON_TOPICS = [
    _NOTHING,
    ["DESCRIBE TOPIC orders"],
    ["READ TOPIC orders"],
    ["WRITE TOPIC orders"],
    ["DELETE TOPIC orders"],
    ["ALL TOPIC orders", "DESCRIBE TOPIC nowhere"],
    ["READ TOPIC *", "WRITE TOPIC *", "-ALL TOPIC hidden"],
]
_ON_OFFSETS = [
    _NOTHING,
    ["DESCRIBE GROUP g"],
    ["READ GROUP g"],
    ["READ TOPIC orders"],
    ["READ GROUP g", "READ TOPIC orders"],
    ["DESCRIBE GROUP g", "DESCRIBE TOPIC hidden", "DESCRIBE TOPIC nowhere"],
]
_ON_TRANSACTION = [
    _NOTHING,
    ["DESCRIBE TRANSACTIONAL_ID t"],
    ["READ GROUP g", "WRITE TOPIC orders"],
    ["WRITE TRANSACTIONAL_ID t"],
    ["WRITE TRANSACTIONAL_ID t", "WRITE TOPIC orders"],
    ["WRITE TRANSACTIONAL_ID t", "READ GROUP g"],
    ["WRITE TRANSACTIONAL_ID t", "READ GROUP g", "READ TOPIC orders"],
]
_DESCRIBING = [_NOTHING, ["DESCRIBE CLUSTER"], ["ALTER CLUSTER"], ["DESCRIBE_CONFIGS CLUSTER"]]
_ALTERING = [_NOTHING, ["DESCRIBE CLUSTER"], ["DESCRIBE_CONFIGS CLUSTER"]]
_PLAIN = wire.batch([b"value"])
ANY_ACL = acl_filter(principal_filter="User:nobody")

PROBES = [
    # the first one: the member of the group sends no heartbeats, and its session ends
    Probe("describe consumer groups", wire.CONSUMER_GROUP_DESCRIBE, (0, 1),
          {"group_ids": ("modern", "none"), "include_authorized_operations": True},
          [_NOTHING, ["DESCRIBE GROUP modern"], ["DESCRIBE GROUP *"],
           ["READ GROUP modern", "DESCRIBE TOPIC hidden"],
           ["DESCRIBE GROUP modern", "DESCRIBE TOPIC orders"]]),
    Probe("produce", wire.PRODUCE, (9, 13), _produce(_PLAIN), _ON_TOPICS),
    Probe("produce with a producer id", wire.PRODUCE, (9,),
          _produce(wire.batch([b"v"], producer_id=5, epoch=0, sequence=0), ("orders",)),
          [_NOTHING, ["WRITE TOPIC orders"], ["IDEMPOTENT_WRITE CLUSTER"]]),
    Probe("produce in a transaction", wire.PRODUCE, (9, 13),
          _produce(wire.batch([b"v"], producer_id=77, epoch=0, sequence=0, attributes=0x10),
                   transactional_id="t"),
          [_NOTHING, ["WRITE TOPIC orders"], ["DESCRIBE TRANSACTIONAL_ID t"]]),
    Probe("fetch", wire.FETCH, (4, 12, 13, 17), _fetch(), _ON_TOPICS),
    Probe("fetch as a replica", wire.FETCH, (12,), _fetch(replica_id=2), [_NOTHING, ["READ TOPIC orders"]]),
    Probe("list offsets", wire.LIST_OFFSETS, (1, 7),
          {"replica_id": -1,
           "topics": _topics("name", "partitions",
                             {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1})},
          _ON_TOPICS),
    Probe(
        "metadata by name",
        wire.METADATA,
        (1, 4, 9, 12),
        {
            "topics": [{"name": name, "topic_id": None} for name in NAMES],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        },
        [*_ON_TOPICS, ["DESCRIBE CLUSTER"]],
    ),
    Probe(
        "metadata by id",
        wire.METADATA,
        (12,),
        {
            "topics": [{"name": None, "topic_id": name} for name in NAMES],
            "include_topic_authorized_operations": True,
        },
        _ON_TOPICS,
    ),
    Probe("metadata of all topics", wire.METADATA, (9, 12), {"topics": None}, _ON_TOPICS),
    Probe("metadata that creates a topic", wire.METADATA, (9,),
          {"topics": [{"name": "made-on-demand", "topic_id": None}], "allow_auto_topic_creation": True},
          [_NOTHING, ["CREATE TOPIC made-on-demand"], ["DESCRIBE TOPIC made-on-demand"]]),
    Probe("commit offsets", wire.OFFSET_COMMIT, (2, 8, 10), _commit(), _ON_OFFSETS),
    Probe("fetch offsets", wire.OFFSET_FETCH, (1, 2, 7, 8, 10), _offset_fetch(_OFFSETS), _ON_OFFSETS),
    Probe("fetch all offsets", wire.OFFSET_FETCH, (2, 8), _offset_fetch(None), _ON_OFFSETS),
    Probe("find a group's coordinator", wire.FIND_COORDINATOR, (1, 3, 4),
          {"key": "joined", "key_type": 0, "coordinator_keys": ("joined", "other")}, _ON_GROUP),
    Probe("find a transaction's coordinator", wire.FIND_COORDINATOR, (1, 4),
          {"key": "t", "key_type": 1, "coordinator_keys": ("t",)}, _ON_TRANSACTION),
    Probe("join a group", wire.JOIN_GROUP, (5, 9), _JOIN, _ON_GROUP),
    Probe("heartbeat", wire.HEARTBEAT, (0, 4), {"group_id": "joined", "member_id": "m"}, _ON_GROUP),
    Probe("leave a group", wire.LEAVE_GROUP, (1, 4),
          {"group_id": "joined", "member_id": "m",
           "members": [{"member_id": "m", "group_instance_id": None, "reason": None}]}, _ON_GROUP),
    Probe("sync a group", wire.SYNC_GROUP, (1, 5),
          {"group_id": "joined", "member_id": "m", "generation_id": 1, "protocol_type": "t",
           "protocol_name": "n"}, _ON_GROUP),
    Probe("sync a group without a protocol", wire.SYNC_GROUP, (5,),
          {"group_id": "joined", "member_id": "m", "generation_id": 1}, _ON_GROUP[:1]),
    Probe("describe groups", wire.DESCRIBE_GROUPS, (3, 6),
          {"groups": ("g", "none"), "include_authorized_operations": True},
          [_NOTHING, ["DESCRIBE GROUP g"], ["READ GROUP *"], ["DELETE GROUP none"]]),
    Probe("list groups", wire.LIST_GROUPS, (4,), {},
          [_NOTHING, ["DESCRIBE GROUP g"], ["READ GROUP g"], ["DESCRIBE CLUSTER"], ["READ GROUP mod*"]]),
    Probe(
        "create topics",
        wire.CREATE_TOPICS,
        (4, 7),
        {
            "topics": [
                {"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("made", "orders")
            ],
            "timeout": 10_000,
            "validate_only": True,
        },
        [
            _NOTHING,
            ["CREATE TOPIC made"],
            ["CREATE CLUSTER"],
            ["CREATE TOPIC made", "DESCRIBE_CONFIGS TOPIC made"],
            ["ALTER TOPIC made", "DESCRIBE CLUSTER"],
        ],
    ),
    Probe("delete topics by name", wire.DELETE_TOPICS, (4, 6),
          {"topics": [{"name": "orders", "topic_id": None}, {"name": "nowhere", "topic_id": None}],
           "topic_names": ("orders", "nowhere"), "timeout": 10_000},
          [_NOTHING, ["DESCRIBE TOPIC orders"], ["DELETE TOPIC nowhere"], ["ALTER CLUSTER", "READ TOPIC *"]]),
    Probe("delete topics by id", wire.DELETE_TOPICS, (6,),
          {"topics": [{"name": None, "topic_id": "orders"}, {"name": None, "topic_id": "nowhere"}],
           "timeout": 10_000}, [_NOTHING, ["DESCRIBE TOPIC orders"], ["READ TOPIC *"], ["CREATE CLUSTER"]]),
    Probe("delete records", wire.DELETE_RECORDS, (2,),
          {"topics": _topics("name", "partitions", {"partition_index": 0, "offset": 0}), "timeout": 10_000},
          _ON_TOPICS),
    Probe("get a producer id", wire.INIT_PRODUCER_ID, (0, 4),
          {"transactional_id": None, "transaction_timeout": 10_000, "producer_id": -1, "producer_epoch": -1},
          [_NOTHING, ["WRITE TOPIC elsewhere"], ["WRITE TOPIC else*"], ["ALL TOPIC *"],
           ["IDEMPOTENT_WRITE CLUSTER"], ["ALTER CLUSTER", "DESCRIBE TOPIC *", "READ TOPIC orders"],
           ["WRITE TOPIC *", "-WRITE TOPIC *"], ["WRITE TOPIC *", "-WRITE TOPIC orders"],
           ["WRITE TOPIC orders", "-WRITE TOPIC orders"], ["WRITE TOPIC orders", "-WRITE TOPIC ord*"],
           ["WRITE TOPIC ord*", "-WRITE TOPIC orders"], ["WRITE TOPIC ord*", "-WRITE TOPIC o*"],
           ["WRITE TOPIC ord*", "-WRITE TOPIC ord*"],
           ["WRITE TOPIC ord*", "-WRITE TOPIC order*", "-READ TOPIC *"],
           ["WRITE TOPIC orders", "-ALL CLUSTER"],
           ["WRITE TOPIC orders", "WRITE TOPIC hidden", "-WRITE TOPIC ord*"]]),
    Probe("get a producer id for a transactional id", wire.INIT_PRODUCER_ID, (0, 4),
          {"transactional_id": "t", "transaction_timeout": 10_000, "producer_id": -1, "producer_epoch": -1},
          [_NOTHING, ["DESCRIBE TRANSACTIONAL_ID t"], ["IDEMPOTENT_WRITE CLUSTER", "WRITE TOPIC *"],
           ["WRITE TRANSACTIONAL_ID t"]]),
    Probe("ask for the ends of epochs", wire.OFFSET_FOR_LEADER_EPOCH, (2, 4),
          {"replica_id": -1,
           "topics": _topics("topic", "partitions",
                             {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0})},
          [*_ON_TOPICS, ["CLUSTER_ACTION CLUSTER"]]),
    Probe(
        "add partitions to a transaction",
        wire.ADD_PARTITIONS_TO_TXN,
        (0, 3),
        {**_OLD_TXN, "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in NAMES]},
        _ON_TRANSACTION,
    ),
    Probe("add partitions to transactions as a broker", wire.ADD_PARTITIONS_TO_TXN, (5,),
          {"transactions": [{**_TXN, "verify_only": True,
                             "topics": [{"name": "orders", "partitions": [0]}]}]}, _ON_TRANSACTION),
    Probe("add offsets to a transaction", wire.ADD_OFFSETS_TO_TXN, (0, 3), {**_TXN, "group_id": "g"},
          _ON_TRANSACTION),
    Probe("end a transaction", wire.END_TXN, (0, 3), {**_TXN, "committed": True}, _ON_TRANSACTION),
    Probe("commit offsets in a transaction", wire.TXN_OFFSET_COMMIT, (0, 3),
          {**_commit(), **_TXN, "generation_id": -1, "group_instance_id": None}, _ON_TRANSACTION),
    Probe("describe ACLs", wire.DESCRIBE_ACLS, (1, 3), ANY_ACL, _DESCRIBING),
    Probe("create ACLs", wire.CREATE_ACLS, (1, 3),
          {"creations": [acl(resource_name="x", principal="User:eve")]}, _ALTERING),
    Probe("delete ACLs", wire.DELETE_ACLS, (1, 3), {"filters": [ANY_ACL]}, [*_ALTERING, ["ALTER CLUSTER"]]),
    Probe("describe configurations", wire.DESCRIBE_CONFIGS, (1, 4),
          _resources(*_CONFIGURED, configuration_keys=("no such",)), _CONFIG_RIGHTS),
    Probe(
        "create partitions",
        wire.CREATE_PARTITIONS,
        (0, 3),
        {
            "topics": [{"name": name, "count": 9, "assignments": None} for name in NAMES],
            "timeout": 10_000,
            "validate_only": True,
        },
        [_NOTHING, ["ALTER TOPIC orders"], ["CREATE TOPIC orders", "ALTER CLUSTER"], ["ALTER TOPIC nowhere"]],
    ),
    Probe("delete groups", wire.DELETE_GROUPS, (0, 2), {"groups_names": ("joined", "other")}, _ON_GROUP),
    Probe("change configurations", wire.INCREMENTAL_ALTER_CONFIGS, (0, 1),
          _resources(*_CONFIGURED, configs=()), _CONFIG_RIGHTS),
    Probe("delete offsets", wire.OFFSET_DELETE, (0,),
          {"group_id": "none", "topics": _topics("name", "partitions", {"partition_index": 0})},
          [_NOTHING, ["READ GROUP none"], ["DELETE GROUP none"], ["DELETE GROUP none", "READ TOPIC orders"]]),
    Probe("describe the cluster", wire.DESCRIBE_CLUSTER, (0, 2),
          {"include_cluster_authorized_operations": True, "endpoint_type": 1},
          [_NOTHING, ["DESCRIBE CLUSTER"], ["ALTER CLUSTER"],
           ["CLUSTER_ACTION CLUSTER", "ALTER_CONFIGS CLUSTER"]]),
    Probe("join a consumer group", wire.CONSUMER_GROUP_HEARTBEAT, (0, 1),
          heartbeat("new-protocol", "orders", "nowhere"),
          [_NOTHING, ["DESCRIBE TOPIC *"], ["READ GROUP new-protocol"],
           ["READ GROUP new-protocol", "DESCRIBE TOPIC orders"],
           ["READ GROUP new-protocol", "DESCRIBE TOPIC orders", "READ TOPIC nowhere"]]),
    Probe(
        "describe the partitions of topics",
        wire.DESCRIBE_TOPIC_PARTITIONS,
        (0,),
        {"topics": [{"name": name} for name in NAMES], "response_partition_limit": 100, "cursor": None},
        _ON_TOPICS,
    ),
    Probe("describe the partitions of all topics", wire.DESCRIBE_TOPIC_PARTITIONS, (0,),
          {"topics": (), "response_partition_limit": 100, "cursor": None}, _ON_TOPICS),
]  # fmt: skip
