"""One full request of each API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.broker import wire
from tests.broker.asking import (
    acl,
    acl_filter,
    alter_configs,
    commit,
    consumer_join,
    create,
    create_partitions,
    delete_records,
    delete_topics,
    describe_configs,
    epoch_end,
    fetch,
    join,
    leave,
    list_offsets,
    offset_delete,
    offset_fetch,
    produce,
    share_beat,
    topic_id,
)
from tests.broker.driver import Driver
from tests.broker.streams_members import streams_join
from tests.broker.transactional import TransactionalProducer


def simply(api_key: int, **fields: Any) -> Callable[[Driver, int], Any]:
    return lambda driver, version: driver.ask(api_key, version, **fields)


consumer_heartbeat = simply(wire.CONSUMER_GROUP_HEARTBEAT, **consumer_join("modern", "m", "orders"))
share_heartbeat = simply(wire.SHARE_GROUP_HEARTBEAT, **share_beat("share", "m", 0, "orders"))


def streams_heartbeat(driver: Driver, version: int) -> Any:
    """A member joins a streams group, whose changelog is missing."""
    return driver.ask(wire.STREAMS_GROUP_HEARTBEAT, version, **streams_join("streams", "orders"))


def share_topics(driver: Driver) -> Any:
    """All partitions of orders, without acknowledgements."""
    partitions = tuple({"partition_index": number, "acknowledgement_batches": ()} for number in range(2))
    return ({"topic_id": topic_id(driver), "partitions": partitions},)


def share_fetch(driver: Driver, version: int) -> Any:
    return driver.ask(
        wire.SHARE_FETCH,
        version,
        group_id="share",
        member_id="m",
        share_session_epoch=0,
        max_wait=wire.milliseconds(0),
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=share_topics(driver),
    )


_PARTITIONS = tuple({"partition_index": number, "start_offset": 0} for number in (0, 9))
alter_share_offsets = simply(
    wire.ALTER_SHARE_OFFSETS, group_id="share", topics=({"topic_name": "orders", "partitions": _PARTITIONS},)
)
describe_share_offsets = simply(
    wire.DESCRIBE_SHARE_OFFSETS,
    groups=tuple(
        {"group_id": "share", "topics": wanted}
        for wanted in (None, tuple({"topic_name": name, "partitions": (0,)} for name in ("orders", "none")))
    ),
)

ACL, ANY_ACL = acl(), acl_filter()
CREDENTIAL: dict[str, Any] = {
    "name": "alice",
    "mechanism": 1,
    "iterations": 4096,
    "salt": b"salt",
    "salted_password": b"p" * 32,
}
_QUOTA = {
    "entity": ({"entity_type": "user", "entity_name": "alice"},),
    "ops": ({"key": "producer_byte_rate", "value": 1000.0},),
}
alter_scram = simply(wire.ALTER_SCRAM, deletions=(), upsertions=(CREDENTIAL,))
alter_quotas = simply(wire.ALTER_QUOTAS, entries=(_QUOTA,), validate_only=False)
_CONFIGURED = {
    "resource_type": 2,
    "resource_name": "orders",
    "configs": ({"name": "retention.ms", "value": "5"},),
}
_QUORUM = tuple(
    {"topic_name": name, "partitions": ({"partition_index": 0},)} for name in ("__cluster_metadata", "orders")
)


def in_transaction(api_key: int, **fields: Any) -> Callable[[Driver, int], Any]:
    """Asks while a producer has an open transaction."""

    def ask(driver: Driver, version: int) -> Any:
        TransactionalProducer(driver).add(1)
        return driver.ask(api_key, version, **fields)

    return ask


def describe_producers(driver: Driver, version: int) -> Any:
    produce(driver, 8, records=wire.batch([b"a"], producer_id=7, epoch=0, sequence=0))
    asked = {"name": "orders", "partition_indexes": (0, 9)}
    return driver.ask(wire.DESCRIBE_PRODUCERS, version, topics=(asked,))


#: By API: asks in a version and returns what is answered.
ASKING: dict[int, Callable[[Driver, int], Any]] = {
    wire.PRODUCE: produce,
    wire.FETCH: fetch,
    wire.LIST_OFFSETS: lambda driver, version: list_offsets(driver, version, -1),
    wire.METADATA: lambda driver, version: driver.ask(
        wire.METADATA, version, topics=() if version == 0 else None
    ),
    wire.OFFSET_COMMIT: commit,
    wire.OFFSET_FETCH: offset_fetch,
    wire.FIND_COORDINATOR: simply(wire.FIND_COORDINATOR, key="g", coordinator_keys=("g",)),
    wire.JOIN_GROUP: lambda driver, _: join(driver, 3, group="joined") and join(driver, 9),
    wire.HEARTBEAT: simply(wire.HEARTBEAT, group_id="g"),
    wire.LEAVE_GROUP: leave,
    wire.SYNC_GROUP: simply(wire.SYNC_GROUP, group_id="g", protocol_type="t", protocol_name="n"),
    wire.DESCRIBE_GROUPS: simply(wire.DESCRIBE_GROUPS, groups=("joined", "none")),
    wire.LIST_GROUPS: simply(wire.LIST_GROUPS),
    wire.API_VERSIONS: simply(wire.API_VERSIONS, client_software_name="a", client_software_version="1"),
    wire.CREATE_TOPICS: lambda driver, version: create(driver, version, f"new-{version}"),
    wire.INIT_PRODUCER_ID: simply(wire.INIT_PRODUCER_ID, transactional_id=None),
    wire.DELETE_TOPICS: lambda driver, version: delete_topics(driver, version, f"new-{version}", "none"),
    wire.DELETE_RECORDS: delete_records,
    wire.OFFSET_FOR_LEADER_EPOCH: epoch_end,
    wire.ADD_PARTITIONS_TO_TXN: lambda driver, version: TransactionalProducer(driver).add(version),
    wire.ADD_OFFSETS_TO_TXN: lambda driver, version: TransactionalProducer(driver).add_offsets(version),
    wire.END_TXN: lambda driver, version: TransactionalProducer(driver).end(version),
    wire.TXN_OFFSET_COMMIT: lambda driver, version: TransactionalProducer(driver).commit_offset(version),
    wire.CREATE_ACLS: simply(wire.CREATE_ACLS, creations=(ACL,)),
    wire.DESCRIBE_ACLS: simply(wire.DESCRIBE_ACLS, **ANY_ACL),
    wire.DELETE_ACLS: simply(wire.DELETE_ACLS, filters=(ANY_ACL,)),
    wire.ALTER_SCRAM: alter_scram,
    wire.ALTER_QUOTAS: alter_quotas,
    wire.DESCRIBE_QUOTAS: lambda driver, version: (
        alter_quotas(driver, 1) and driver.ask(wire.DESCRIBE_QUOTAS, version, components=(), strict=False)
    ),
    wire.ALTER_CONFIGS: simply(wire.ALTER_CONFIGS, resources=(_CONFIGURED,)),
    wire.DESCRIBE_SCRAM: lambda driver, version: (
        alter_scram(driver, 0) and driver.ask(wire.DESCRIBE_SCRAM, version, users=None)
    ),
    wire.DESCRIBE_CONFIGS: describe_configs,
    wire.CREATE_PARTITIONS: lambda driver, version: create_partitions(driver, version, 4),
    wire.DELETE_GROUPS: simply(wire.DELETE_GROUPS, groups_names=("none",)),
    wire.INCREMENTAL_ALTER_CONFIGS: lambda driver, version: alter_configs(
        driver, version, ("retention.ms", 0, "5")
    ),
    wire.OFFSET_DELETE: lambda driver, _: commit(driver, 8) and offset_delete(driver, 0),
    wire.DESCRIBE_CLUSTER: simply(wire.DESCRIBE_CLUSTER, endpoint_type=1),
    wire.SASL_HANDSHAKE: simply(wire.SASL_HANDSHAKE, mechanism="PLAIN"),
    wire.SASL_AUTHENTICATE: simply(wire.SASL_AUTHENTICATE, auth_bytes=b""),
    wire.CONSUMER_GROUP_HEARTBEAT: consumer_heartbeat,
    wire.CONSUMER_GROUP_DESCRIBE: lambda driver, version: (
        consumer_heartbeat(driver, 1)
        and driver.ask(wire.CONSUMER_GROUP_DESCRIBE, version, group_ids=("modern", "none"))
    ),
    wire.SHARE_GROUP_HEARTBEAT: share_heartbeat,
    wire.SHARE_GROUP_DESCRIBE: lambda driver, version: (
        share_heartbeat(driver, 1)
        and driver.ask(wire.SHARE_GROUP_DESCRIBE, version, group_ids=("share", "none"))
    ),
    wire.SHARE_FETCH: share_fetch,
    wire.SHARE_ACKNOWLEDGE: lambda driver, version: (
        share_fetch(driver, 2)
        and driver.ask(
            wire.SHARE_ACKNOWLEDGE,
            version,
            group_id="share",
            member_id="m",
            share_session_epoch=1,
            topics=share_topics(driver),
        )
    ),
    wire.DESCRIBE_SHARE_OFFSETS: lambda driver, version: (
        alter_share_offsets(driver, 0) and describe_share_offsets(driver, version)
    ),
    wire.ALTER_SHARE_OFFSETS: alter_share_offsets,
    wire.DELETE_SHARE_OFFSETS: lambda driver, version: (
        alter_share_offsets(driver, 0)
        and driver.ask(
            wire.DELETE_SHARE_OFFSETS, version, group_id="share", topics=({"topic_name": "orders"},)
        )
    ),
    wire.STREAMS_GROUP_HEARTBEAT: streams_heartbeat,
    wire.STREAMS_GROUP_DESCRIBE: lambda driver, version: (
        streams_heartbeat(driver, 1)
        and driver.ask(wire.STREAMS_GROUP_DESCRIBE, version, group_ids=("streams", "none"))
    ),
    wire.TOPOLOGY_DESCRIPTION_UPDATE: simply(
        wire.TOPOLOGY_DESCRIPTION_UPDATE, group_id="streams", member_id="m", topology_description={}
    ),
    wire.DESCRIBE_LOG_DIRS: simply(wire.DESCRIBE_LOG_DIRS, topics=None),
    wire.ELECT_LEADERS: simply(
        wire.ELECT_LEADERS, election_type=0, topic_partitions=({"topic": "orders", "partitions": (0, 9)},)
    ),
    wire.ALTER_REASSIGNMENTS: simply(
        wire.ALTER_REASSIGNMENTS,
        topics=({"name": "orders", "partitions": ({"partition_index": 0, "replicas": (1,)},)},),
    ),
    wire.LIST_REASSIGNMENTS: simply(wire.LIST_REASSIGNMENTS, topics=None),
    wire.DESCRIBE_QUORUM: simply(wire.DESCRIBE_QUORUM, topics=_QUORUM),
    wire.UPDATE_FEATURES: simply(
        wire.UPDATE_FEATURES,
        feature_updates=({"feature": "group.version", "max_version_level": 1, "upgrade_type": 1},),
    ),
    wire.LIST_CONFIG_RESOURCES: simply(wire.LIST_CONFIG_RESOURCES),
    wire.DESCRIBE_PRODUCERS: describe_producers,
    wire.DESCRIBE_TRANSACTIONS: in_transaction(wire.DESCRIBE_TRANSACTIONS, transactional_ids=("t", "none")),
    wire.LIST_TRANSACTIONS: in_transaction(
        wire.LIST_TRANSACTIONS, duration_filter=-1, transactional_id_pattern=None
    ),
    wire.DESCRIBE_TOPIC_PARTITIONS: simply(
        wire.DESCRIBE_TOPIC_PARTITIONS, response_partition_limit=2, cursor=None
    ),
}
