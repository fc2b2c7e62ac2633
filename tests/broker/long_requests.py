"""Requests of many items, for each API that may have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.broker.requests import WORK_PER_TURN
from tests.broker import wire
from tests.broker.asking import topic_id
from tests.broker.asking_all import ACL, ANY_ACL, CREDENTIAL
from tests.broker.driver import Driver
from tests.broker.wire import milliseconds

#: Items of a long request: more than a turn's work, whatever the API.
MANY = 3 * WORK_PER_TURN
_NAMES = tuple(f"name-{number}" for number in range(MANY))
FIND_COORDINATOR_KEYS = {"key_type": 0, "coordinator_keys": tuple(f"g{number}" for number in range(MANY))}


def _named(field: str = "name", **more: Any) -> tuple[Any, ...]:
    """Many structures with different names."""
    return tuple({**more, field: name} for name in _NAMES)


def _partitions(topic: str = "name", index: str = "partition_index", **more: Any) -> tuple[Any, ...]:
    """One topic with many partitions, most of which there are not. ``topic``, ``index``: the fields that name
    it and them."""
    return ({topic: "orders", "partitions": tuple({index: number, **more} for number in range(MANY))},)


_OF_MEMBER: dict[str, Any] = {"group_id": "g", "member_id": "m"}
_SHARE_FETCH: dict[str, Any] = {
    **_OF_MEMBER,
    "share_session_epoch": 0,
    "max_wait": milliseconds(0),
    "min_bytes": 1,
    "max_records": 1,
    "batch_size": 1,
}


def _share_topics(driver: Driver, *ranges: Any) -> tuple[Any, ...]:
    (topic,) = _partitions(acknowledgement_batches=ranges)
    return ({**topic, "topic_id": topic_id(driver)},)


def _acknowledging(driver: Driver) -> dict[str, Any]:
    """The acknowledgements of a member that has a session."""
    driver.send(wire.SHARE_FETCH, 2, **_SHARE_FETCH, topics=())
    one = {"first_offset": 0, "last_offset": 0, "acknowledge_types": (1,)}
    return {**_OF_MEMBER, "share_session_epoch": 1, "topics": _share_topics(driver, one)}


_QUOTAS = tuple(
    {
        "entity": ({"entity_type": "user", "entity_name": name},),
        "ops": ({"key": "producer_byte_rate", "value": 1.0},),
    }
    for name in _NAMES
)

_Fields = dict[str, Any]
#: API -> its key, a version, and the fields of the request.
_LONG: dict[str, tuple[int, int, _Fields | Callable[[Driver], _Fields]]] = {
    "Produce": (
        wire.PRODUCE,
        9,
        {"acks": -1, "topic_data": _named(partition_data=({"index": 0, "records": b""},))},
    ),
    "Fetch": (
        wire.FETCH,
        11,
        {
            "topics": _partitions("topic", "partition", current_leader_epoch=-1),
            "session_epoch": -1,
            "max_wait": milliseconds(500),
        },
    ),
    "ListOffsets": (wire.LIST_OFFSETS, 5, {"topics": _partitions(), "replica_id": -1}),
    "Metadata": (wire.METADATA, 4, {"topics": _named(), "allow_auto_topic_creation": False}),
    "OffsetCommit": (
        wire.OFFSET_COMMIT,
        8,
        {"topics": _partitions(), "group_id": "g", "generation_id_or_member_epoch": -1},
    ),
    "OffsetFetch": (wire.OFFSET_FETCH, 8, {"groups": _named("group_id", topics=None)}),
    "FindCoordinator": (wire.FIND_COORDINATOR, 4, FIND_COORDINATOR_KEYS),
    "DescribeGroups": (wire.DESCRIBE_GROUPS, 5, {"groups": _NAMES}),
    "CreateTopics": (wire.CREATE_TOPICS, 5, {"topics": _named(num_partitions=0)}),
    "DeleteTopics": (wire.DELETE_TOPICS, 5, {"topic_names": _NAMES}),
    "DeleteRecords": (wire.DELETE_RECORDS, 1, {"topics": _partitions()}),
    "OffsetForLeaderEpoch": (
        wire.OFFSET_FOR_LEADER_EPOCH,
        3,
        {"topics": _partitions("topic", "partition"), "replica_id": -1},
    ),
    "DescribeConfigs": (
        wire.DESCRIBE_CONFIGS,
        2,
        {"resources": _named("resource_name", resource_type=2, configuration_keys=None)},
    ),
    "DeleteGroups": (wire.DELETE_GROUPS, 1, {"groups_names": _NAMES}),
    "CreatePartitions": (wire.CREATE_PARTITIONS, 1, {"topics": _named(count=9, assignments=None)}),
    "ConsumerGroupDescribe": (wire.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": _NAMES}),
    "LeaveGroup": (wire.LEAVE_GROUP, 4, {"group_id": "g", "members": _named("member_id")}),
    "CreateAcls": (wire.CREATE_ACLS, 2, {"creations": _named("resource_name", **ACL)}),
    "DeleteAcls": (wire.DELETE_ACLS, 2, {"filters": _named("resource_name_filter", **ANY_ACL)}),
    "AlterClientQuotas": (wire.ALTER_QUOTAS, 1, {"entries": _QUOTAS, "validate_only": False}),
    "DescribeUserScramCredentials": (wire.DESCRIBE_SCRAM, 0, {"users": _named()}),
    "AlterUserScramCredentials": (wire.ALTER_SCRAM, 0, {"deletions": (), "upsertions": _named(**CREDENTIAL)}),
    "DescribeTopicPartitions": (
        wire.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": _named(), "response_partition_limit": 2000, "cursor": None},
    ),
    "ShareFetch": (wire.SHARE_FETCH, 2, lambda driver: {**_SHARE_FETCH, "topics": _share_topics(driver)}),
    "ShareAcknowledge": (wire.SHARE_ACKNOWLEDGE, 2, _acknowledging),
    "DescribeShareGroupOffsets": (
        wire.DESCRIBE_SHARE_OFFSETS,
        1,
        {"groups": _named("group_id", topics=None)},
    ),
    "AlterShareGroupOffsets": (
        wire.ALTER_SHARE_OFFSETS,
        0,
        {"topics": _partitions("topic_name", start_offset=0), "group_id": "g"},
    ),
}
LONG = tuple(_LONG)


def send_long(driver: Driver, api: str) -> int:
    """Send the long request of this API; give its connection."""
    api_key, version, fields = _LONG[api]
    return driver.send(api_key, version, **(fields(driver) if callable(fields) else fields))
