"""Requests of the APIs, with the fields that most tests need."""

from __future__ import annotations

import uuid
from typing import Any

from groupstorm.broker.apis import APIS
from groupstorm.coordinator.errors import Error
from tests.broker import wire
from tests.broker.driver import Driver
from tests.broker.wire import milliseconds


def topic_id(driver: Driver, name: str = "orders") -> uuid.UUID:
    topic = driver.broker.state.topics.get(name)
    assert topic is not None
    return topic.topic_id


def versions(api_key: int) -> list[int]:
    api = APIS[api_key]
    return list(range(api.min_version, api.max_version + 1))


def metadata(
    driver: Driver, version: int, *names: str | None, ids: tuple[Any, ...] = (), **more: Any
) -> list[Any]:
    topics = tuple({"name": name} for name in names)
    topics += tuple({"name": None, "topic_id": one} for one in ids)
    more = {"allow_auto_topic_creation": True, **more}
    return list(driver.ask(wire.METADATA, version, topics=topics, **more).topics)


def produce_fields(
    driver: Driver, partition: int = 0, records: bytes | None = None, name: str = "orders", **more: Any
) -> dict[str, Any]:
    records = wire.batch([b"value"]) if records is None else records
    data = {"index": partition, "records": records}
    topic = {"name": name, "topic_id": topic_id(driver), "partition_data": (data,)}
    body = {"transactional_id": None, "acks": -1, "timeout": milliseconds(1000), "topic_data": (topic,)}
    return body | more


def produce(
    driver: Driver, version: int, partition: int = 0, records: bytes | None = None, **more: Any
) -> Any:
    fields = produce_fields(driver, partition, records, **more)
    return driver.ask(wire.PRODUCE, version, **fields).responses[0].partition_responses[0]


def fetch_fields(
    driver: Driver, offset: int, max_wait_ms: int, name: str = "orders", **more: Any
) -> dict[str, Any]:
    limits = {"partition_max_bytes": 1_000_000, "current_leader_epoch": -1}
    partition = {"partition": 0, "fetch_offset": offset, **limits | more}
    topic = {"topic": name, "topic_id": topic_id(driver, name), "partitions": (partition,)}
    return {
        "max_wait": milliseconds(max_wait_ms),
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "topics": (topic,),
        **{name: value for name, value in more.items() if name not in limits},
    }


def fetch(driver: Driver, version: int, offset: int = 0, **more: Any) -> Any:
    answer = driver.ask(wire.FETCH, version, **fetch_fields(driver, offset, 0, **more))
    return answer.responses[0].partitions[0]


def list_offsets(
    driver: Driver, version: int, timestamp: int, partition: int = 0, name: str = "orders"
) -> Any:
    asked = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": -1}
    topic = {"name": name, "partitions": (asked,)}
    return driver.ask(wire.LIST_OFFSETS, version, replica_id=-1, topics=(topic,)).topics[0].partitions[0]


def create(
    driver: Driver, version: int, *names: str, partitions: int = 2, validate_only: bool = False, **more: Any
) -> Any:
    fields = {"num_partitions": partitions, "replication_factor": 1, **more}
    topics = tuple({"name": name, **fields} for name in names)
    return driver.ask(wire.CREATE_TOPICS, version, topics=topics, validate_only=validate_only).topics


def join_fields(group: str = "g", **more: Any) -> dict[str, Any]:
    protocol = {"name": "range", "metadata": b""}
    timeouts = {"session_timeout": milliseconds(10_000), "rebalance_timeout": milliseconds(60_000)}
    member = {"group_id": group, "member_id": "", "protocol_type": "consumer", "protocols": (protocol,)}
    return {**timeouts, **member, **more}


def join(driver: Driver, version: int, group: str = "g", **more: Any) -> int:
    return driver.send(wire.JOIN_GROUP, version, **join_fields(group, **more))


def consumer_join(group: str, member: str, *topics: str, **more: Any) -> dict[str, Any]:
    """The fields of the first heartbeat of a consumer group's member."""
    fields = {"group_id": group, "member_id": member, "member_epoch": 0, "subscribed_topic_names": topics}
    return {**fields, "rebalance_timeout": milliseconds(30_000), **more}


def share_beat(group: str, member: str, epoch: int, *topics: str) -> dict[str, Any]:
    """The fields of a heartbeat of a share group's member."""
    who = {"group_id": group, "member_id": member, "member_epoch": epoch}
    return {**who, "subscribed_topic_names": topics or None}


def leave(driver: Driver, version: int) -> Any:
    members = ({"member_id": "m"},) if version >= 3 else ()
    return driver.ask(wire.LEAVE_GROUP, version, group_id="none", member_id="m", members=members)


def commit(driver: Driver, version: int, *partitions: int, name: str = "orders", **more: Any) -> Any:
    asked = tuple(
        {"partition_index": index, "committed_offset": 10 + index, "committed_metadata": None}
        for index in partitions or (0,)
    )
    topic = {"name": name, "topic_id": more.pop("topic_id", topic_id(driver)), "partitions": asked}
    fields = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": (topic,)}
    answer = driver.ask(wire.OFFSET_COMMIT, version, **(fields | more)).topics[0]
    return [(one.partition_index, one.error_code) for one in answer.partitions]


def offset_fetch(
    driver: Driver, version: int, *partitions: int, everything: bool = False, group: str = "g"
) -> Any:
    topic = {"name": "orders", "topic_id": topic_id(driver), "partition_indexes": partitions or (0,)}
    topics = None if everything else (topic,)
    groups: tuple[Any, ...] = ()
    if version >= 8:
        groups = ({"group_id": group, "topics": topics},)
    answer = driver.ask(wire.OFFSET_FETCH, version, group_id=group, topics=topics, groups=groups)
    topics = answer.groups[0].topics if version >= 8 else answer.topics
    return [
        (one.partition_index, one.committed_offset, one.error_code)
        for topic in topics
        for one in topic.partitions
    ]


def delete_topics(driver: Driver, version: int, *names: str, ids: tuple[Any, ...] = ()) -> list[Error]:
    states = [{"name": name, "topic_id": None} for name in names] if version >= 6 else []
    states += [{"name": None, "topic_id": one} for one in ids]
    answer = driver.ask(wire.DELETE_TOPICS, version, topic_names=names, topics=tuple(states))
    return [Error(one.error_code) for one in answer.responses]


def delete_records(driver: Driver, version: int, offset: int = 0, partition: int = 0) -> tuple[Error, int]:
    asked = {"partition_index": partition, "offset": offset}
    topic = {"name": "orders", "partitions": (asked,)}
    (result,) = driver.ask(wire.DELETE_RECORDS, version, topics=(topic,)).topics[0].partitions
    return Error(result.error_code), result.low_watermark


def epoch_end(driver: Driver, version: int, epoch: int = 0, current: int = -1) -> tuple[Error, int, int]:
    asked = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    topic = {"topic": "orders", "partitions": (asked,)}
    (result,) = driver.ask(wire.OFFSET_FOR_LEADER_EPOCH, version, topics=(topic,)).topics[0].partitions
    return Error(result.error_code), result.leader_epoch, result.end_offset


def create_partitions(driver: Driver, version: int, count: int, name: str = "orders", **more: Any) -> Error:
    fields = {"assignments": None, **more}
    topic = {"name": name, "count": count, **fields}
    answer = driver.ask(wire.CREATE_PARTITIONS, version, topics=(topic,), **more)
    return Error(answer.results[0].error_code)


def describe_configs(driver: Driver, version: int, kind: int = 2, name: str = "orders", **more: Any) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None, **more}
    answer = driver.ask(wire.DESCRIBE_CONFIGS, version, resources=(resource,), include_synonyms=True)
    return answer.results[0]


def alter_configs(
    driver: Driver,
    version: int,
    *changes: tuple[str, int, str | None],
    kind: int = 2,
    name: str = "orders",
    **more: Any,
) -> Error:
    """``changes``: name, operation (0 set, 1 delete, 2 append, 3 subtract), value."""
    configs = tuple(
        {"name": one, "config_operation": operation, "value": value} for one, operation, value in changes
    )
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = driver.ask(wire.INCREMENTAL_ALTER_CONFIGS, version, resources=(resource,), **more)
    return Error(answer.responses[0].error_code)


def acl(**more: Any) -> dict[str, Any]:
    """A rule: alice may read orders."""
    rule = {"resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3}
    return {**rule, "principal": "User:alice", "host": "*", "operation": 3, "permission_type": 3, **more}


def acl_filter(**more: Any) -> dict[str, Any]:
    """A filter that finds every rule, without ``more``."""
    resource = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    access = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    return {**resource, **access, **more}


def offset_delete(driver: Driver, *partitions: int, group: str = "g") -> tuple[Error, list[Error]]:
    asked = tuple({"partition_index": index} for index in partitions)
    topic = {"name": "orders", "partitions": asked}
    answer = driver.ask(wire.OFFSET_DELETE, 0, group_id=group, topics=(topic,))
    errors = [Error(one.error_code) for topic in answer.topics for one in topic.partitions]
    return Error(answer.error_code), errors
