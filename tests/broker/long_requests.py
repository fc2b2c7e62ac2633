"""Requests of many items, for each API that may have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupstorm.broker.requests import WORK_PER_TURN
from tests.broker import wire
from tests.broker.asking import topic_id
from tests.broker.asking_all import ANY_ACL
from tests.broker.driver import Driver
from tests.broker.wire import milliseconds, structure

#: Items of a long request: more than a turn's work, whatever the API.
MANY = 3 * WORK_PER_TURN
FIND_COORDINATOR_KEYS = {"key_type": 0, "coordinator_keys": tuple(f"g{number}" for number in range(MANY))}

AskFor = tuple[int, int, Callable[[Driver], dict[str, Any]]]


def _named(
    api_key: int, version: int, kind: str, field: str = "name", **more: Any
) -> Callable[[], tuple[Any, ...]]:
    """Many structures with different names, made when they are asked for."""
    return lambda: tuple(
        structure(api_key, version, kind, **{field: f"name-{number}"}, **more) for number in range(MANY)
    )


def _partitions(
    api_key: int, version: int, topic: str, partition: str, **more: Any
) -> Callable[[Driver], Any]:
    """One topic with many partitions, most of which there are not."""
    index = more.pop("index", "partition_index")
    fields = {"name": more.pop("named", "name"), "partitions": more.pop("partitions", "partitions")}

    def topics(driver: Driver) -> dict[str, Any]:
        asked = tuple(
            structure(api_key, version, partition, **{index: number}, **more) for number in range(MANY)
        )
        made = {fields["name"]: "orders", fields["partitions"]: asked, "topic_id": topic_id(driver)}
        return {"topics": (structure(api_key, version, topic, **made),)}

    return topics


def _fields(**fields: Any) -> Callable[[Driver], dict[str, Any]]:
    return lambda _driver: {name: value() if callable(value) else value for name, value in fields.items()}


def _both(asked: Callable[[Driver], dict[str, Any]], **more: Any) -> Callable[[Driver], dict[str, Any]]:
    return lambda driver: {**asked(driver), **more}


_ACL = {
    "resource_type": 2,
    "resource_pattern_type": 3,
    "principal": "User:somebody",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_FILTER: dict[str, Any] = {name: value for name, value in ANY_ACL.items() if name != "resource_name_filter"}

_SHARE_FETCH: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "share_session_epoch": 0,
    "max_wait": milliseconds(0),
    "min_bytes": 1,
    "max_records": 1,
    "batch_size": 1,
    "forgotten_topics_data": (),
}


def _share_partitions(api_key: int, kind: str, ranges: tuple[Any, ...] = ()) -> Callable[[Driver], Any]:
    topic, partition = f"{kind}Topic", f"{kind}Partition"
    return _partitions(api_key, 2, topic, partition, named="topic", acknowledgement_batches=ranges)


def _acknowledging(driver: Driver) -> dict[str, Any]:
    """The acknowledgements of a member that has a session."""
    driver.send(wire.SHARE_FETCH, 2, **_SHARE_FETCH, topics=())
    key = wire.SHARE_ACKNOWLEDGE
    one = structure(key, 2, "AcknowledgementBatch", first_offset=0, last_offset=0, acknowledge_types=(1,))
    return {
        "group_id": "g",
        "member_id": "m",
        "share_session_epoch": 1,
        **_share_partitions(key, "Acknowledge", (one,))(driver),
    }


LONG: dict[str, AskFor] = {
    "Produce": (
        wire.PRODUCE,
        9,
        _fields(
            transactional_id=None,
            acks=-1,
            topic_data=_named(
                wire.PRODUCE,
                9,
                "TopicProduceData",
                partition_data=(structure(wire.PRODUCE, 9, "PartitionProduceData", index=0, records=b""),),
            ),
        ),
    ),
    "Fetch": (
        wire.FETCH,
        11,
        _both(
            _partitions(
                wire.FETCH,
                11,
                "FetchTopic",
                "FetchPartition",
                named="topic",
                index="partition",
                current_leader_epoch=-1,
            ),
            replica_id=-1,
            session_epoch=-1,
            max_wait=milliseconds(500),
        ),
    ),
    "ListOffsets": (
        wire.LIST_OFFSETS,
        5,
        _both(_partitions(wire.LIST_OFFSETS, 5, "ListOffsetsTopic", "ListOffsetsPartition"), replica_id=-1),
    ),
    "Metadata": (
        wire.METADATA,
        4,
        _fields(topics=_named(wire.METADATA, 4, "MetadataRequestTopic"), allow_auto_topic_creation=False),
    ),
    "OffsetCommit": (
        wire.OFFSET_COMMIT,
        8,
        _both(
            _partitions(wire.OFFSET_COMMIT, 8, "OffsetCommitRequestTopic", "OffsetCommitRequestPartition"),
            group_id="g",
            generation_id_or_member_epoch=-1,
        ),
    ),
    "OffsetFetch": (
        wire.OFFSET_FETCH,
        8,
        _fields(groups=_named(wire.OFFSET_FETCH, 8, "OffsetFetchRequestGroup", "group_id", topics=None)),
    ),
    "FindCoordinator": (wire.FIND_COORDINATOR, 4, _fields(**FIND_COORDINATOR_KEYS)),
    "DescribeGroups": (
        wire.DESCRIBE_GROUPS,
        5,
        _fields(groups=tuple(f"name-{number}" for number in range(MANY))),
    ),
    "CreateTopics": (
        wire.CREATE_TOPICS,
        5,
        _fields(topics=_named(wire.CREATE_TOPICS, 5, "CreatableTopic", num_partitions=0)),
    ),
    "DeleteTopics": (
        wire.DELETE_TOPICS,
        5,
        _fields(topic_names=tuple(f"name-{number}" for number in range(MANY))),
    ),
    "DeleteRecords": (
        wire.DELETE_RECORDS,
        1,
        _partitions(wire.DELETE_RECORDS, 1, "DeleteRecordsTopic", "DeleteRecordsPartition"),
    ),
    "OffsetForLeaderEpoch": (
        wire.OFFSET_FOR_LEADER_EPOCH,
        3,
        _both(
            _partitions(
                *(wire.OFFSET_FOR_LEADER_EPOCH, 3, "OffsetForLeaderTopic", "OffsetForLeaderPartition"),
                named="topic",
                index="partition",
            ),
            replica_id=-1,
        ),
    ),
    "DescribeConfigs": (
        wire.DESCRIBE_CONFIGS,
        2,
        _fields(
            resources=_named(
                wire.DESCRIBE_CONFIGS,
                2,
                "DescribeConfigsResource",
                "resource_name",
                resource_type=2,
                configuration_keys=None,
            )
        ),
    ),
    "DeleteGroups": (
        wire.DELETE_GROUPS,
        1,
        _fields(groups_names=tuple(f"name-{number}" for number in range(MANY))),
    ),
    "CreatePartitions": (
        wire.CREATE_PARTITIONS,
        1,
        _fields(topics=_named(wire.CREATE_PARTITIONS, 1, "CreatePartitionsTopic", count=9, assignments=None)),
    ),
    "ConsumerGroupDescribe": (
        wire.CONSUMER_GROUP_DESCRIBE,
        1,
        _fields(group_ids=tuple(f"name-{number}" for number in range(MANY))),
    ),
    "LeaveGroup": (
        wire.LEAVE_GROUP,
        4,
        _fields(group_id="g", members=_named(wire.LEAVE_GROUP, 4, "MemberIdentity", "member_id")),
    ),
    "CreateAcls": (
        wire.CREATE_ACLS,
        2,
        _fields(creations=_named(wire.CREATE_ACLS, 2, "AclCreation", "resource_name", **_ACL)),
    ),
    "DeleteAcls": (
        wire.DELETE_ACLS,
        2,
        _fields(
            filters=_named(
                *(wire.DELETE_ACLS, 2, "DeleteAclsFilter", "resource_name_filter"),
                **_FILTER,
            )
        ),
    ),
    "AlterClientQuotas": (
        wire.ALTER_QUOTAS,
        1,
        _fields(
            entries=lambda: tuple(
                structure(
                    *(wire.ALTER_QUOTAS, 1, "EntryData"),
                    entity=(
                        structure(
                            *(wire.ALTER_QUOTAS, 1, "EntityData"),
                            entity_type="user",
                            entity_name=f"name-{number}",
                        ),
                    ),
                    ops=(structure(wire.ALTER_QUOTAS, 1, "OpData", key="producer_byte_rate", value=1.0),),
                )
                for number in range(MANY)
            ),
            validate_only=False,
        ),
    ),
    "DescribeUserScramCredentials": (
        wire.DESCRIBE_SCRAM,
        0,
        _fields(users=_named(wire.DESCRIBE_SCRAM, 0, "UserName")),
    ),
    "AlterUserScramCredentials": (
        wire.ALTER_SCRAM,
        0,
        _fields(
            deletions=(),
            upsertions=_named(
                *(wire.ALTER_SCRAM, 0, "ScramCredentialUpsertion"),
                mechanism=1,
                iterations=4096,
                salt=b"salt",
                salted_password=b"p" * 32,
            ),
        ),
    ),
    "DescribeTopicPartitions": (
        wire.DESCRIBE_TOPIC_PARTITIONS,
        0,
        _fields(
            topics=_named(wire.DESCRIBE_TOPIC_PARTITIONS, 0, "TopicRequest"),
            response_partition_limit=2000,
            cursor=None,
        ),
    ),
    "ShareFetch": (wire.SHARE_FETCH, 2, _both(_share_partitions(wire.SHARE_FETCH, "Fetch"), **_SHARE_FETCH)),
    "ShareAcknowledge": (wire.SHARE_ACKNOWLEDGE, 2, _acknowledging),
    "DescribeShareGroupOffsets": (
        wire.DESCRIBE_SHARE_OFFSETS,
        1,
        _fields(
            groups=_named(
                wire.DESCRIBE_SHARE_OFFSETS,
                1,
                "DescribeShareGroupOffsetsRequestGroup",
                "group_id",
                topics=None,
            )
        ),
    ),
    "AlterShareGroupOffsets": (
        wire.ALTER_SHARE_OFFSETS,
        0,
        _both(
            _partitions(
                wire.ALTER_SHARE_OFFSETS,
                0,
                "AlterShareGroupOffsetsRequestTopic",
                "AlterShareGroupOffsetsRequestPartition",
                named="topic_name",
                start_offset=0,
            ),
            group_id="g",
        ),
    ),
}
