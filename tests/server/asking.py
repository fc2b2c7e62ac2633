"""One request of each API, with the fields that most tests need."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from groupstorm.coordinator.server.apis import APIS
from tests.server import wire
from tests.server.desk import Desk
from tests.server.wire import milliseconds, structure


def topic_id(desk: Desk, name: str = "orders") -> uuid.UUID:
    topic = desk.broker.state.topics.get(name)
    assert topic is not None
    return topic.topic_id


def versions(api_key: int) -> list[int]:
    api = APIS[api_key]
    return list(range(api.min_version, api.max_version + 1))


def metadata(
    desk: Desk, version: int, *names: str | None, ids: tuple[Any, ...] = (), **more: Any
) -> list[Any]:
    topics = tuple(structure(wire.METADATA, version, "MetadataRequestTopic", name=name) for name in names)
    topics += tuple(
        structure(wire.METADATA, version, "MetadataRequestTopic", name=None, topic_id=one) for one in ids
    )
    more = {"allow_auto_topic_creation": True, **more}
    return list(desk.ask(wire.METADATA, version, topics=topics, **more).topics)


def produce(
    desk: Desk,
    version: int,
    partition: int = 0,
    records: bytes | None = None,
    name: str = "orders",
    **more: Any,
) -> Any:
    records = wire.batch([b"value"]) if records is None else records
    data = structure(wire.PRODUCE, version, "PartitionProduceData", index=partition, records=records)
    topic = structure(
        wire.PRODUCE, version, "TopicProduceData", name=name, topic_id=topic_id(desk), partition_data=(data,)
    )
    body = {
        "transactional_id": None,
        "acks": -1,
        "timeout": milliseconds(1000),
        "topic_data": (topic,),
        **more,
    }
    return desk.ask(wire.PRODUCE, version, **body).responses[0].partition_responses[0]


def fetch_fields(desk: Desk, version: int, offset: int, max_wait_ms: int, **more: Any) -> dict[str, Any]:
    limits = {"partition_max_bytes": 1_000_000, "current_leader_epoch": -1}
    partition = structure(
        wire.FETCH, version, "FetchPartition", partition=0, fetch_offset=offset, **(limits | more)
    )
    topic = structure(
        wire.FETCH, version, "FetchTopic", topic="orders", topic_id=topic_id(desk), partitions=(partition,)
    )
    return {
        "replica_id": -1,
        "max_wait": milliseconds(max_wait_ms),
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "topics": (topic,),
        **{name: value for name, value in more.items() if name not in limits},
    }


def fetch(desk: Desk, version: int, offset: int = 0, **more: Any) -> Any:
    answer = desk.ask(wire.FETCH, version, **fetch_fields(desk, version, offset, 0, **more))
    return answer.responses[0].partitions[0]


def list_offsets(desk: Desk, version: int, timestamp: int, partition: int = 0) -> Any:
    asked = structure(
        wire.LIST_OFFSETS,
        version,
        "ListOffsetsPartition",
        partition_index=partition,
        timestamp=timestamp,
        current_leader_epoch=-1,
    )
    topic = structure(wire.LIST_OFFSETS, version, "ListOffsetsTopic", name="orders", partitions=(asked,))
    return desk.ask(wire.LIST_OFFSETS, version, replica_id=-1, topics=(topic,)).topics[0].partitions[0]


def create(
    desk: Desk, version: int, *names: str, partitions: int = 2, validate_only: bool = False, **more: Any
) -> Any:
    fields = {"num_partitions": partitions, "replication_factor": 1, **more}
    topics = tuple(
        structure(wire.CREATE_TOPICS, version, "CreatableTopic", name=name, **fields) for name in names
    )
    return desk.ask(wire.CREATE_TOPICS, version, topics=topics, validate_only=validate_only).topics


def join(desk: Desk, version: int, group: str = "g", **more: Any) -> int:
    protocol = structure(wire.JOIN_GROUP, version, "JoinGroupRequestProtocol", name="range", metadata=b"")
    fields = {
        "group_id": group,
        "session_timeout": milliseconds(10_000),
        "rebalance_timeout": milliseconds(60_000),
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": (protocol,),
    }
    return desk.send(wire.JOIN_GROUP, version, **(fields | more))


def leave(desk: Desk, version: int) -> Any:
    members = (structure(wire.LEAVE_GROUP, version, "MemberIdentity", member_id="m"),) if version >= 3 else ()
    return desk.ask(wire.LEAVE_GROUP, version, group_id="none", member_id="m", members=members)


def commit(desk: Desk, version: int, *partitions: int, name: str = "orders", **more: Any) -> Any:
    asked = tuple(
        structure(
            wire.OFFSET_COMMIT,
            version,
            "OffsetCommitRequestPartition",
            partition_index=index,
            committed_offset=10 + index,
            committed_leader_epoch=-1,
            committed_metadata=None,
        )
        for index in partitions or (0,)
    )
    topic = structure(
        wire.OFFSET_COMMIT,
        version,
        "OffsetCommitRequestTopic",
        name=name,
        topic_id=more.pop("topic_id", topic_id(desk)),
        partitions=asked,
    )
    fields = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "topics": (topic,)}
    answer = desk.ask(wire.OFFSET_COMMIT, version, **(fields | more)).topics[0]
    return [(one.partition_index, one.error_code) for one in answer.partitions]


def offset_fetch(
    desk: Desk, version: int, *partitions: int, everything: bool = False, group: str = "g"
) -> Any:
    suffix = "s" if version >= 8 else ""
    topic = structure(
        wire.OFFSET_FETCH,
        version,
        f"OffsetFetchRequestTopic{suffix}",
        name="orders",
        topic_id=topic_id(desk),
        partition_indexes=partitions or (0,),
    )
    topics = None if everything else (topic,)
    groups: tuple[Any, ...] = ()
    if version >= 8:
        groups = (
            structure(wire.OFFSET_FETCH, version, "OffsetFetchRequestGroup", group_id=group, topics=topics),
        )
    answer = desk.ask(wire.OFFSET_FETCH, version, group_id=group, topics=topics, groups=groups)
    topics = answer.groups[0].topics if version >= 8 else answer.topics
    return [
        (one.partition_index, one.committed_offset, one.error_code)
        for topic in topics
        for one in topic.partitions
    ]


def simply(api_key: int, **fields: Any) -> Callable[[Desk, int], Any]:
    return lambda desk, version: desk.ask(api_key, version, **fields)


#: A request of each API that is answered with as much as there is to say.
ASKING: dict[int, Callable[[Desk, int], Any]] = {
    wire.PRODUCE: produce,
    wire.FETCH: fetch,
    wire.LIST_OFFSETS: lambda desk, version: list_offsets(desk, version, -1),
    wire.METADATA: lambda desk, version: desk.ask(
        wire.METADATA, version, topics=() if version == 0 else None
    ),
    wire.OFFSET_COMMIT: commit,
    wire.OFFSET_FETCH: offset_fetch,
    wire.FIND_COORDINATOR: simply(wire.FIND_COORDINATOR, key="g", coordinator_keys=("g",)),
    wire.JOIN_GROUP: lambda desk, _: join(desk, 3, group="joined") and join(desk, 9),
    wire.HEARTBEAT: simply(wire.HEARTBEAT, group_id="g"),
    wire.LEAVE_GROUP: leave,
    wire.SYNC_GROUP: simply(wire.SYNC_GROUP, group_id="g", protocol_type="t", protocol_name="n"),
    wire.DESCRIBE_GROUPS: simply(wire.DESCRIBE_GROUPS, groups=("joined", "none")),
    wire.LIST_GROUPS: simply(wire.LIST_GROUPS),
    wire.API_VERSIONS: simply(wire.API_VERSIONS, client_software_name="a", client_software_version="1"),
    wire.CREATE_TOPICS: lambda desk, version: create(desk, version, f"new-{version}"),
    wire.INIT_PRODUCER_ID: simply(wire.INIT_PRODUCER_ID, transactional_id=None),
}
