"""One request of each API, with the fields that most tests need."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from groupstorm.coordinator.errors import Error
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


def delete_topics(desk: Desk, version: int, *names: str, ids: tuple[Any, ...] = ()) -> list[Error]:
    states = (
        [
            structure(wire.DELETE_TOPICS, version, "DeleteTopicState", name=name, topic_id=None)
            for name in names
        ]
        if version >= 6
        else []
    )
    states += [
        structure(wire.DELETE_TOPICS, version, "DeleteTopicState", name=None, topic_id=one) for one in ids
    ]
    answer = desk.ask(wire.DELETE_TOPICS, version, topic_names=names, topics=tuple(states))
    return [Error(one.error_code) for one in answer.responses]


def delete_records(desk: Desk, version: int, offset: int = 0, partition: int = 0) -> tuple[Error, int]:
    asked = structure(
        wire.DELETE_RECORDS, version, "DeleteRecordsPartition", partition_index=partition, offset=offset
    )
    topic = structure(wire.DELETE_RECORDS, version, "DeleteRecordsTopic", name="orders", partitions=(asked,))
    (result,) = desk.ask(wire.DELETE_RECORDS, version, topics=(topic,)).topics[0].partitions
    return Error(result.error_code), result.low_watermark


def epoch_end(desk: Desk, version: int, epoch: int = 0, current: int = -1) -> tuple[Error, int, int]:
    asked = structure(
        wire.OFFSET_FOR_LEADER_EPOCH,
        version,
        "OffsetForLeaderPartition",
        partition=0,
        current_leader_epoch=current,
        leader_epoch=epoch,
    )
    topic = structure(
        wire.OFFSET_FOR_LEADER_EPOCH, version, "OffsetForLeaderTopic", topic="orders", partitions=(asked,)
    )
    (result,) = desk.ask(wire.OFFSET_FOR_LEADER_EPOCH, version, topics=(topic,)).topics[0].partitions
    return Error(result.error_code), result.leader_epoch, result.end_offset


def create_partitions(desk: Desk, version: int, count: int, name: str = "orders", **more: Any) -> Error:
    fields = {"assignments": None, **more}
    topic = structure(
        wire.CREATE_PARTITIONS, version, "CreatePartitionsTopic", name=name, count=count, **fields
    )
    answer = desk.ask(wire.CREATE_PARTITIONS, version, topics=(topic,), **more)
    return Error(answer.results[0].error_code)


def describe_configs(desk: Desk, version: int, kind: int = 2, name: str = "orders", **more: Any) -> Any:
    resource = structure(
        wire.DESCRIBE_CONFIGS,
        version,
        "DescribeConfigsResource",
        resource_type=kind,
        resource_name=name,
        **{"configuration_keys": None, **more},
    )
    answer = desk.ask(wire.DESCRIBE_CONFIGS, version, resources=(resource,), include_synonyms=True)
    return answer.results[0]


def alter_configs(
    desk: Desk,
    version: int,
    *changes: tuple[str, int, str | None],
    kind: int = 2,
    name: str = "orders",
    **more: Any,
) -> Error:
    """``changes``: name, operation (0 set, 1 delete, 2 append, 3 subtract), value."""
    configs = tuple(
        structure(
            wire.INCREMENTAL_ALTER_CONFIGS,
            version,
            "AlterableConfig",
            name=one,
            config_operation=operation,
            value=value,
        )
        for one, operation, value in changes
    )
    resource = structure(
        wire.INCREMENTAL_ALTER_CONFIGS,
        version,
        "AlterConfigsResource",
        resource_type=kind,
        resource_name=name,
        configs=configs,
    )
    answer = desk.ask(wire.INCREMENTAL_ALTER_CONFIGS, version, resources=(resource,), **more)
    return Error(answer.responses[0].error_code)


def offset_delete(desk: Desk, *partitions: int, group: str = "g") -> tuple[Error, list[Error]]:
    asked = tuple(
        structure(wire.OFFSET_DELETE, 0, "OffsetDeleteRequestPartition", partition_index=index)
        for index in partitions
    )
    topic = structure(wire.OFFSET_DELETE, 0, "OffsetDeleteRequestTopic", name="orders", partitions=asked)
    answer = desk.ask(wire.OFFSET_DELETE, 0, group_id=group, topics=(topic,))
    errors = [Error(one.error_code) for topic in answer.topics for one in topic.partitions]
    return Error(answer.error_code), errors


class TransactionalProducer:
    """Asks as a producer with a transactional id does."""

    def __init__(self, desk: Desk, name: str = "t", version: int = 4) -> None:
        """``version`` of InitProducerId."""
        self.desk = desk
        self.name = name
        self.init(version)

    def init(self, version: int = 4, timeout_ms: int = 60_000, **more: Any) -> Error:
        fields = {"producer_id": -1, "producer_epoch": -1, **more}
        answer = self.desk.ask(
            wire.INIT_PRODUCER_ID,
            version,
            transactional_id=self.name,
            transaction_timeout=milliseconds(timeout_ms),
            **fields,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence = 0
        return Error(answer.error_code)

    def add(self, version: int = 3, *partitions: int) -> Error:
        own = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        topic = structure(
            wire.ADD_PARTITIONS_TO_TXN,
            version,
            "AddPartitionsToTxnTopic",
            name="orders",
            partitions=partitions or (0,),
        )
        if version < 4:
            answer = self.desk.ask(
                wire.ADD_PARTITIONS_TO_TXN,
                version,
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=(topic,),
            )
            (result,) = answer.results_by_topic_v3_and_below
        else:
            one = structure(
                wire.ADD_PARTITIONS_TO_TXN,
                version,
                "AddPartitionsToTxnTransaction",
                transactional_id=self.name,
                topics=(topic,),
                **own,
            )
            answer = self.desk.ask(wire.ADD_PARTITIONS_TO_TXN, version, transactions=(one,))
            (result,) = answer.results_by_transaction[0].topic_results
        return Error(result.results_by_partition[0].partition_error_code)

    def produce(self, version: int = 9, value: bytes = b"value", partition: int = 0) -> Error:
        batch = wire.batch(
            [value],
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            attributes=0x10,
        )
        more = {"transactional_id": self.name}
        answer = produce(self.desk, version, partition, batch, **more)
        self.sequence += answer.error_code == 0
        return Error(answer.error_code)

    def _own(self) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add_offsets(self, version: int = 3, group: str = "g") -> Error:
        answer = self.desk.ask(wire.ADD_OFFSETS_TO_TXN, version, group_id=group, **self._own())
        return Error(answer.error_code)

    def commit_offset(self, version: int = 3, offset: int = 5, partition: int = 0, **more: Any) -> Error:
        asked = structure(
            wire.TXN_OFFSET_COMMIT,
            version,
            "TxnOffsetCommitRequestPartition",
            partition_index=partition,
            committed_offset=offset,
            committed_metadata=None,
        )
        topic = structure(
            wire.TXN_OFFSET_COMMIT, version, "TxnOffsetCommitRequestTopic", name="orders", partitions=(asked,)
        )
        fields = {"group_id": "g", "generation_id": -1, "member_id": "", **self._own(), **more}
        answer = self.desk.ask(wire.TXN_OFFSET_COMMIT, version, topics=(topic,), **fields)
        return Error(answer.topics[0].partitions[0].error_code)

    def end(self, version: int = 3, commit: bool = True) -> Error:
        answer = self.desk.ask(wire.END_TXN, version, committed=commit, **self._own())
        if version >= 5 and not answer.error_code:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return Error(answer.error_code)


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
    wire.DELETE_TOPICS: lambda desk, version: delete_topics(desk, version, f"new-{version}", "none"),
    wire.DELETE_RECORDS: delete_records,
    wire.OFFSET_FOR_LEADER_EPOCH: epoch_end,
    wire.ADD_PARTITIONS_TO_TXN: lambda desk, version: TransactionalProducer(desk).add(version),
    wire.ADD_OFFSETS_TO_TXN: lambda desk, version: TransactionalProducer(desk).add_offsets(version),
    wire.END_TXN: lambda desk, version: TransactionalProducer(desk).end(version),
    wire.TXN_OFFSET_COMMIT: lambda desk, version: TransactionalProducer(desk).commit_offset(version),
    wire.DESCRIBE_CONFIGS: describe_configs,
    wire.CREATE_PARTITIONS: lambda desk, version: create_partitions(desk, version, 4),
    wire.DELETE_GROUPS: simply(wire.DELETE_GROUPS, groups_names=("none",)),
    wire.INCREMENTAL_ALTER_CONFIGS: lambda desk, version: alter_configs(
        desk, version, ("retention.ms", 0, "5")
    ),
    wire.OFFSET_DELETE: lambda desk, _: commit(desk, 8) and offset_delete(desk, 0),
    wire.DESCRIBE_CLUSTER: simply(wire.DESCRIBE_CLUSTER, endpoint_type=1),
    wire.SASL_HANDSHAKE: simply(wire.SASL_HANDSHAKE, mechanism="PLAIN"),
    wire.SASL_AUTHENTICATE: simply(wire.SASL_AUTHENTICATE, auth_bytes=b""),
    wire.DESCRIBE_TOPIC_PARTITIONS: simply(
        wire.DESCRIBE_TOPIC_PARTITIONS, response_partition_limit=2, cursor=None
    ),
}
