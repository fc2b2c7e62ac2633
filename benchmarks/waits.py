"""How long one client's request makes another client wait: `groupstorm serve`, one request after the other.

    python -m benchmarks.waits [--turns] [--data] [--only WORD] [--repeat 3] [--tree DIR]

Beside the request another client asks for ApiVersions every few milliseconds. The longest of its waits is the
row; of several runs, each with a broker of its own, the smallest counts, since the machine may be busy.

With ``--turns`` there are no sockets, and the longest time of CPU counts for which the broker serves nobody
else: a figure that does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from groupstorm.broker.assembly import make_broker
from groupstorm.broker.service import CYCLES
from groupstorm.broker.surface import BrokerEffects, Peer
from groupstorm.protocol.codec import decoder, encoder, request_type, response_types
from groupstorm.protocol.codec.shape import KioType, shapes_of
from groupstorm.protocol.endpoints import Endpoint

_HOST = "127.0.0.1"
_PEER = Peer("/127.0.0.1", Endpoint(_HOST, 9092))
_EVERY_S = 0.003
_LONGEST_S = 120.0
_SERVE = "from groupstorm.cli.app import main; main()"

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 0, 1, 2, 3, 8, 9, 10
JOIN_GROUP, SYNC_GROUP, LEAVE_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 11, 14, 13, 15, 16, 18
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID, EPOCH_END = 19, 20, 21, 22, 23
ADD_PARTITIONS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT, DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = (
    24,
    26,
    28,
    29,
    30,
    31,
)
DESCRIBE_CONFIGS, ALTER_CONFIGS, CREATE_PARTITIONS, DELETE_GROUPS, INCREMENTAL, OFFSET_DELETE = (
    32,
    33,
    37,
    42,
    44,
    47,
)
DESCRIBE_QUOTAS, ALTER_QUOTAS, DESCRIBE_SCRAM, ALTER_SCRAM = 48, 49, 50, 51
HEARTBEAT, GROUP_DESCRIBE, DESCRIBE_PARTITIONS = 68, 69, 75


def made(api_key: int, version: int, kind: str = "", /, **values: Any) -> Any:
    """A structure of a request, or the request; fields that are not named have their defaults."""
    root = request_type(api_key, version)
    chosen: KioType = getattr(sys.modules[root.__module__], kind) if kind else root
    defaults = {shape.name: () if shape.array else shape.default for shape in shapes_of(chosen)}
    return chosen(**{name: values.get(name, default) for name, default in defaults.items()})


def frame(api_key: int, version: int, **values: Any) -> bytes:
    message = made(api_key, version, **values)
    kind: KioType = type(message)
    header = struct.pack(">hhih", api_key, version, 1, 5) + b"bench" + b"\x00" * bool(kind.__flexible__)
    payload = header + b"".join(encoder(kind)(message))
    return struct.pack(">i", len(payload)) + payload


class Client:
    """A connection that sends whole requests and reads whole answers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((_HOST, port), _LONGEST_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, payload: bytes) -> bytes:
        """The answer without its length; empty if the broker closes the connection."""
        try:
            self._socket.sendall(payload)
            length = self._read(4)
            return self._read(struct.unpack(">i", length)[0]) if length else b""
        except ConnectionError:
            return b""

    def _read(self, count: int) -> bytes:
        data = bytearray(count)
        view, at = memoryview(data), 0
        while at < count:
            got = self._socket.recv_into(view[at:])
            if not got:
                return b""
            at += got
        return bytes(data)

    def ask(self, api_key: int, version: int, **values: Any) -> Any:
        payload = self.send(frame(api_key, version, **values))
        types = response_types(api_key, version)
        at = 5 if types.root.__header_schema__.__version__ else 4
        return decoder(types.root)(payload, at)[0]

    def close(self) -> None:
        self._socket.close()


#: Prepares the broker and returns the requests to send, one after the other.
Prepare = Callable[[Client], Iterable[bytes]]
CASES: dict[str, tuple[Prepare, Sequence[str]]] = {}


def case(name: str, *options: str) -> Callable[[Prepare], Prepare]:
    def register(prepare: Prepare) -> Prepare:
        CASES[name] = prepare, options
        return prepare

    return register


# what a broker holds


def make_topics(client: Client, count: int, partitions: int = 1) -> list[str]:
    names = [f"topic-{number}" for number in range(count)]
    at_once = max(1, min(1000, 5_000 // partitions))
    for first in range(0, count, at_once):
        topics = tuple(
            made(
                CREATE_TOPICS, 5, "CreatableTopic", name=name, num_partitions=partitions, replication_factor=1
            )
            for name in names[first : first + at_once]
        )
        client.ask(CREATE_TOPICS, 4, topics=topics)
    return names


def make_groups(client: Client, count: int) -> list[str]:
    """Each has one committed offset."""
    make_topics(client, 1)
    names = [f"group-{number}" for number in range(count)]
    partition = made(OFFSET_COMMIT, 8, "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = made(OFFSET_COMMIT, 8, "OffsetCommitRequestTopic", name="topic-0", partitions=(partition,))
    for name in names:
        client.send(frame(OFFSET_COMMIT, 8, group_id=name, generation_id_or_member_epoch=-1, topics=(topic,)))
    return names


# the requests


def heartbeat(regex: str, group: str = "g", **more: Any) -> bytes:
    fields = {"group_id": group, "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0}
    timeout = {"rebalance_timeout": timedelta(seconds=60), "server_assignor": None, "rack_id": None}
    return frame(
        HEARTBEAT,
        1,
        **fields,
        **timeout,
        instance_id=None,
        subscribed_topic_names=(),
        subscribed_topic_regex=regex,
        topic_partitions=(),
        **more,
    )


@case("heartbeat, regex (.?){1000}(.?){900}z, 2,000 topics")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 2_000)
    return [heartbeat("(.?){1000}(.?){900}z")]


@case("heartbeat, regex [a-z]*(a|b|c|d)*x.*, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 20_000)
    return [heartbeat("[a-z]*(a|b|c|d)*x.*"), heartbeat(".*", "h")]


@case("heartbeat, regex of 10,000 nested parentheses, 3 topics")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 3)
    return [heartbeat("(" * 10_000 + "a" + ")" * 10_000)]


@case("heartbeat, regex of 32,000 letters, 2,000 topics")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 2_000)
    return [heartbeat("(.*a)|" * 5_000)]


@case("Metadata that creates 200,000 topics")
def _(client: Client) -> Iterable[bytes]:
    topics = tuple(
        made(METADATA, 4, "MetadataRequestTopic", name=f"auto-{number}") for number in range(200_000)
    )
    return [frame(METADATA, 4, topics=topics, allow_auto_topic_creation=True)]


@case("Metadata of 200,000 unknown topics")
def _(client: Client) -> Iterable[bytes]:
    topics = tuple(
        made(METADATA, 4, "MetadataRequestTopic", name=f"auto-{number}") for number in range(200_000)
    )
    return [frame(METADATA, 4, topics=topics, allow_auto_topic_creation=False)]


@case("Metadata of all of 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 20_000)
    return [frame(METADATA, 9, topics=None)]


@case("Metadata of all of 10 topics of 5,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 10, 5_000)
    return [frame(METADATA, 9, topics=None)]


@case("Metadata of one topic of 5,000 partitions, 200 times")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 1, 5_000)
    topics = (made(METADATA, 4, "MetadataRequestTopic", name="topic-0"),) * 200
    return [frame(METADATA, 4, topics=topics)]


@case("CreateTopics, 10,000 topics")
def _(client: Client) -> Iterable[bytes]:
    yield _create(10_000)


@case("CreateTopics, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    yield _create(100_000)


@case("CreateTopics, 200,000 topics of no partitions")
def _(client: Client) -> Iterable[bytes]:
    yield _create(200_000, 0)


@case("CreateTopics, one topic of 10,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    yield _create(1, 10_000)


def _create(count: int, partitions: int = 1) -> bytes:
    kind = "CreatableTopic"
    topics = (
        made(CREATE_TOPICS, 5, kind, name=f"new-{number}", num_partitions=partitions, replication_factor=1)
        for number in range(count)
    )
    return frame(CREATE_TOPICS, 5, topics=tuple(topics))


@case("CreatePartitions, one topic to 10,000")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 1)
    topic = made(
        CREATE_PARTITIONS, 1, "CreatePartitionsTopic", name="topic-0", count=10_000, assignments=None
    )
    return [frame(CREATE_PARTITIONS, 1, topics=(topic,))]


@case("CreatePartitions, 1,000 topics to 1,000 each")
def _(client: Client) -> Iterable[bytes]:
    kind = "CreatePartitionsTopic"
    topics = tuple(
        made(CREATE_PARTITIONS, 1, kind, name=name, count=1_000, assignments=None)
        for name in make_topics(client, 1_000)
    )
    return [frame(CREATE_PARTITIONS, 1, topics=topics)]


@case("DeleteTopics, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    return [frame(DELETE_TOPICS, 5, topic_names=tuple(make_topics(client, 20_000)))]


@case("DeleteTopics, 10 topics of 5,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [frame(DELETE_TOPICS, 5, topic_names=tuple(make_topics(client, 10, 5_000)))]


@case("DescribeTopicPartitions, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 20_000)
    topics = tuple(made(DESCRIBE_PARTITIONS, 0, "TopicRequest", name=name) for name in names)
    return [
        frame(DESCRIBE_PARTITIONS, 0, topics=topics, response_partition_limit=2_000, cursor=None),
        frame(DESCRIBE_PARTITIONS, 0, topics=(), response_partition_limit=2_000, cursor=None),
    ]


@case("DescribeTopicPartitions, 200,000 unknown topics")
def _(client: Client) -> Iterable[bytes]:
    topics = tuple(
        made(DESCRIBE_PARTITIONS, 0, "TopicRequest", name=f"t{number}") for number in range(200_000)
    )
    return [frame(DESCRIBE_PARTITIONS, 0, topics=topics, response_partition_limit=2_000, cursor=None)]


@case("DescribeConfigs, 20,000 resources")
def _(client: Client) -> Iterable[bytes]:
    resources = tuple(
        made(
            DESCRIBE_CONFIGS,
            2,
            "DescribeConfigsResource",
            resource_type=2,
            resource_name=name,
            configuration_keys=None,
        )
        for name in make_topics(client, 1_000) * 20
    )
    return [frame(DESCRIBE_CONFIGS, 2, resources=resources, include_synonyms=True)]


@case("AlterConfigs, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    config = made(ALTER_CONFIGS, 1, "AlterableConfig", name="retention.ms", value="1000")
    resources = tuple(
        made(ALTER_CONFIGS, 1, "AlterConfigsResource", resource_type=2, resource_name=name, configs=(config,))
        for name in make_topics(client, 20_000)
    )
    return [frame(ALTER_CONFIGS, 1, resources=resources)]


@case("IncrementalAlterConfigs, 100,000 groups")
def _(client: Client) -> Iterable[bytes]:
    config = made(
        INCREMENTAL,
        1,
        "AlterableConfig",
        name="consumer.session.timeout.ms",
        value="45000",
        config_operation=0,
    )
    resources = tuple(
        made(
            INCREMENTAL,
            1,
            "AlterConfigsResource",
            resource_type=32,
            resource_name=f"g{number}",
            configs=(config,),
        )
        for number in range(100_000)
    )
    return [frame(INCREMENTAL, 1, resources=resources)]


@case("IncrementalAlterConfigs, one topic, 100,000 configurations")
def _(client: Client) -> Iterable[bytes]:
    make_topics(client, 1)
    config = made(INCREMENTAL, 1, "AlterableConfig", name="retention.ms", value="1000", config_operation=0)
    resource = made(
        INCREMENTAL,
        1,
        "AlterConfigsResource",
        resource_type=2,
        resource_name="topic-0",
        configs=(config,) * 100_000,
    )
    return [frame(INCREMENTAL, 1, resources=(resource,))]


_AUTHORIZED = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def _acls(count: int) -> bytes:
    creations = tuple(
        made(
            CREATE_ACLS,
            2,
            "AclCreation",
            resource_type=2,
            resource_name=f"topic-{number}",
            resource_pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
        for number in range(count)
    )
    return frame(CREATE_ACLS, 2, creations=creations)


_ALL = {"resource_name_filter": None, "principal_filter": None, "host_filter": None, "operation": 1}


@case("CreateAcls, 100,000 ACLs", _AUTHORIZED, "super.users=User:ANONYMOUS")
def _(client: Client) -> Iterable[bytes]:
    return [_acls(100_000)]


@case("DescribeAcls, all of 100,000", _AUTHORIZED, "super.users=User:ANONYMOUS")
def _(client: Client) -> Iterable[bytes]:
    for _first in range(10):
        client.send(_acls(100_000))
    all_of = {"resource_type_filter": 1, "pattern_type_filter": 1, "permission_type": 1, **_ALL}
    return [frame(DESCRIBE_ACLS, 2, **all_of)]


@case("DeleteAcls, all of 100,000, and 1,000 filters", _AUTHORIZED, "super.users=User:ANONYMOUS")
def _(client: Client) -> Iterable[bytes]:
    client.send(_acls(100_000))
    nothing = {"resource_type_filter": 3, "pattern_type_filter": 1, "permission_type": 1, **_ALL}
    everything = {**nothing, "resource_type_filter": 1}
    filters = (made(DELETE_ACLS, 2, "DeleteAclsFilter", **nothing),) * 1_000
    return [
        frame(DELETE_ACLS, 2, filters=filters),
        frame(DELETE_ACLS, 2, filters=(made(DELETE_ACLS, 2, "DeleteAclsFilter", **everything),)),
    ]


@case("ListGroups, 10,000 groups")
def _(client: Client) -> Iterable[bytes]:
    make_groups(client, 10_000)
    return [frame(LIST_GROUPS, 4)]


@case("DescribeGroups, 10,000 groups")
def _(client: Client) -> Iterable[bytes]:
    return [frame(DESCRIBE_GROUPS, 5, groups=tuple(make_groups(client, 10_000)))]


@case("DescribeGroups, 100,000 unknown groups")
def _(client: Client) -> Iterable[bytes]:
    return [frame(DESCRIBE_GROUPS, 5, groups=tuple(f"unknown-{number}" for number in range(100_000)))]


@case("ConsumerGroupDescribe, 100,000 unknown groups")
def _(client: Client) -> Iterable[bytes]:
    return [frame(GROUP_DESCRIBE, 1, group_ids=tuple(f"unknown-{number}" for number in range(100_000)))]


@case("DeleteGroups, 10,000 groups")
def _(client: Client) -> Iterable[bytes]:
    return [frame(DELETE_GROUPS, 1, groups_names=tuple(make_groups(client, 10_000)))]


@case("OffsetFetch, all of 10,000 groups")
def _(client: Client) -> Iterable[bytes]:
    names = make_groups(client, 10_000)
    groups = tuple(
        made(OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id=name, topics=None) for name in names
    )
    return [frame(OFFSET_FETCH, 8, groups=groups)]


@case("OffsetFetch, all 20,000 offsets of a group")
def _(client: Client) -> Iterable[bytes]:
    for name in make_topics(client, 4, 5_000):
        client.send(_commit(OFFSET_COMMIT, 8, [name], 5_000))
    group = made(OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id="g", topics=None)
    return [frame(OFFSET_FETCH, 8, groups=(group,))]


@case("OffsetFetch, 200,000 named partitions")
def _(client: Client) -> Iterable[bytes]:
    indexes = tuple(range(200_000))
    topic = made(OFFSET_FETCH, 8, "OffsetFetchRequestTopics", name="topic-0", partition_indexes=indexes)
    group = made(OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id="g", topics=(topic,))
    return [frame(OFFSET_FETCH, 8, groups=(group,))]


def _commit(api_key: int, version: int, topics: Sequence[str], partitions: int, **more: Any) -> bytes:
    kind = "OffsetCommitRequest" if api_key == OFFSET_COMMIT else "TxnOffsetCommitRequest"
    asked = tuple(
        made(api_key, version, f"{kind}Partition", partition_index=index, committed_offset=1)
        for index in range(partitions)
    )
    named = tuple(made(api_key, version, f"{kind}Topic", name=name, partitions=asked) for name in topics)
    own = {"group_id": "g", "generation_id_or_member_epoch": -1, "generation_id": -1}
    return frame(api_key, version, **own, topics=named, **more)


@case("OffsetCommit, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_commit(OFFSET_COMMIT, 8, make_topics(client, 4, 5_000), 5_000)]


@case("OffsetCommit, 100,000 unknown partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_commit(OFFSET_COMMIT, 8, ["unknown"], 100_000)]


@case("OffsetDelete, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 4, 5_000)
    for name in names:
        client.send(_commit(OFFSET_COMMIT, 8, [name], 5_000))
    asked = tuple(
        made(OFFSET_DELETE, 0, "OffsetDeleteRequestPartition", partition_index=index)
        for index in range(5_000)
    )
    topics = tuple(
        made(OFFSET_DELETE, 0, "OffsetDeleteRequestTopic", name=name, partitions=asked) for name in names
    )
    return [frame(OFFSET_DELETE, 0, group_id="g", topics=topics)]


def _producer(client: Client) -> dict[str, Any]:
    timeout = {"transaction_timeout": timedelta(seconds=60)}
    own = client.ask(INIT_PRODUCER_ID, 2, transactional_id="t", **timeout)
    return {"transactional_id": "t", "producer_id": own.producer_id, "producer_epoch": own.producer_epoch}


def _add_to_txn(topics: Sequence[str], partitions: int, producer: dict[str, Any]) -> bytes:
    kind = "AddPartitionsToTxnTopic"
    named = tuple(
        made(ADD_PARTITIONS_TO_TXN, 3, kind, name=name, partitions=tuple(range(partitions)))
        for name in topics
    )
    own = {f"v3_and_below_{name}": value for name, value in {**producer, "topics": named}.items()}
    return frame(ADD_PARTITIONS_TO_TXN, 3, **own)


@case("AddPartitionsToTxn, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_add_to_txn(make_topics(client, 4, 5_000), 5_000, _producer(client))]


@case("AddPartitionsToTxn, 200,000 unknown partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_add_to_txn(["unknown"], 200_000, _producer(client))]


@case("EndTxn of 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    producer = _producer(client)
    for name in make_topics(client, 4, 5_000):
        client.send(_add_to_txn([name], 5_000, producer))
    return [frame(END_TXN, 2, committed=True, **producer)]


@case("TxnOffsetCommit, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_commit(TXN_OFFSET_COMMIT, 2, make_topics(client, 4, 5_000), 5_000, **_producer(client))]


@case("ListOffsets, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(LIST_OFFSETS, 5, "ListOffsetsPartition", partition_index=index, timestamp=-1)
        for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(LIST_OFFSETS, 5, "ListOffsetsTopic", name=name, partitions=asked) for name in names)
    return [frame(LIST_OFFSETS, 5, replica_id=-1, topics=topics)]


@case("OffsetForLeaderEpoch, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(made(EPOCH_END, 3, "OffsetForLeaderPartition", partition=index) for index in range(5_000))
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(EPOCH_END, 3, "OffsetForLeaderTopic", topic=name, partitions=asked) for name in names)
    return [frame(EPOCH_END, 3, replica_id=-1, topics=topics)]


@case("DeleteRecords, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(DELETE_RECORDS, 1, "DeleteRecordsPartition", partition_index=index, offset=-1)
        for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(
        made(DELETE_RECORDS, 1, "DeleteRecordsTopic", name=name, partitions=asked) for name in names
    )
    return [frame(DELETE_RECORDS, 1, topics=topics)]


def _fetch(names: Sequence[str], partitions: int, **more: Any) -> bytes:
    asked = tuple(
        made(FETCH, 11, "FetchPartition", partition=index, partition_max_bytes=1000, current_leader_epoch=-1)
        for index in range(partitions)
    )
    topics = tuple(made(FETCH, 11, "FetchTopic", topic=name, partitions=asked) for name in names)
    fields = {"replica_id": -1, "max_wait": timedelta(0), "min_bytes": 1, "max_bytes": 1_000_000}
    return frame(FETCH, 11, topics=topics, **{**fields, "session_epoch": -1, **more})


@case("Fetch, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000)]


@case("Fetch, 20,000 partitions, new session")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000, session_epoch=0)]


@case("Fetch, 20,000 partitions, waits 100 ms")
def _(client: Client) -> Iterable[bytes]:
    return [_fetch(make_topics(client, 4, 5_000), 5_000, max_wait=timedelta(milliseconds=100))]


@case("Produce, 20,000 partitions without records")
def _(client: Client) -> Iterable[bytes]:
    asked = tuple(
        made(PRODUCE, 7, "PartitionProduceData", index=index, records=None) for index in range(5_000)
    )
    names = make_topics(client, 4, 5_000)
    topics = tuple(made(PRODUCE, 7, "TopicProduceData", name=name, partition_data=asked) for name in names)
    return [frame(PRODUCE, 7, transactional_id=None, acks=-1, topic_data=topics)]


@case("FindCoordinator, 200,000 keys")
def _(client: Client) -> Iterable[bytes]:
    return [
        frame(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=tuple(f"g{one}" for one in range(200_000)))
    ]


@case("LeaveGroup, 100,000 members")
def _(client: Client) -> Iterable[bytes]:
    members = tuple(
        made(LEAVE_GROUP, 4, "MemberIdentity", member_id=f"m{number}") for number in range(100_000)
    )
    return [frame(LEAVE_GROUP, 4, group_id="g", members=members)]


def _join(metadata: bytes, protocols: int = 1) -> bytes:
    kind = "JoinGroupRequestProtocol"
    named = tuple(
        made(JOIN_GROUP, 3, kind, name=f"range-{one}", metadata=metadata) for one in range(protocols)
    )
    timeouts = {"session_timeout": timedelta(seconds=30), "rebalance_timeout": timedelta(seconds=60)}
    own = {"group_id": "big", "member_id": "", "protocol_type": "consumer", "protocols": named}
    return frame(JOIN_GROUP, 3, **own, **timeouts)


@case("JoinGroup, 50 MB of metadata", "group.initial.rebalance.delay.ms=0")
def _(client: Client) -> Iterable[bytes]:
    return [_join(b"x" * 50_000_000)]


@case("JoinGroup, 100,000 protocols", "group.initial.rebalance.delay.ms=0")
def _(client: Client) -> Iterable[bytes]:
    return [_join(b"x", 100_000)]


@case("SyncGroup, 50 MB and 100,000 assignments", "group.initial.rebalance.delay.ms=0")
def _(client: Client) -> Iterable[bytes]:
    payload = client.send(_join(b"x"))
    joined = decoder(response_types(JOIN_GROUP, 3).root)(payload, 4)[0]
    kind = "SyncGroupRequestAssignment"
    own = {"group_id": "big", "member_id": joined.member_id, "generation_id": joined.generation_id}
    big = made(SYNC_GROUP, 2, kind, member_id=joined.member_id, assignment=b"x" * 50_000_000)
    many = tuple(
        made(SYNC_GROUP, 2, kind, member_id=f"m{number}", assignment=b"x") for number in range(100_000)
    )
    return [frame(SYNC_GROUP, 2, assignments=many, **own), frame(SYNC_GROUP, 2, assignments=(big,), **own)]


@case("heartbeat, subscription of 200,000 topics")
def _(client: Client) -> Iterable[bytes]:
    names = tuple(f"topic-{number}" for number in range(200_000))
    fields = {"group_id": "g", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0}
    timeout = {"rebalance_timeout": timedelta(seconds=60), "server_assignor": None, "rack_id": None}
    empty = {"instance_id": None, "subscribed_topic_regex": None, "topic_partitions": ()}
    return [frame(HEARTBEAT, 1, **fields, **timeout, **empty, subscribed_topic_names=names)]


@case("AlterClientQuotas, 100,000 entities")
def _(client: Client) -> Iterable[bytes]:
    operation = made(ALTER_QUOTAS, 1, "OpData", key="producer_byte_rate", value=1000.0, remove=False)
    entries = tuple(
        made(
            ALTER_QUOTAS,
            1,
            "EntryData",
            entity=(made(ALTER_QUOTAS, 1, "EntityData", entity_type="user", entity_name=f"u{number}"),),
            ops=(operation,),
        )
        for number in range(100_000)
    )
    return [
        frame(ALTER_QUOTAS, 1, entries=entries, validate_only=False),
        frame(DESCRIBE_QUOTAS, 1, components=(), strict=False),
    ]


@case("AlterUserScramCredentials, 100,000 users, 2^31-1 iterations")
def _(client: Client) -> Iterable[bytes]:
    def upserts(iterations: int, count: int) -> tuple[Any, ...]:
        kind = "ScramCredentialUpsertion"
        secret = {"mechanism": 1, "iterations": iterations, "salt": b"salt", "salted_password": b"x" * 32}
        return tuple(made(ALTER_SCRAM, 0, kind, name=f"u{number}", **secret) for number in range(count))

    return [
        frame(ALTER_SCRAM, 0, deletions=(), upsertions=upserts(2**31 - 1, 1)),
        frame(ALTER_SCRAM, 0, deletions=(), upsertions=upserts(4096, 100_000)),
        frame(DESCRIBE_SCRAM, 0, users=None),
        frame(
            DESCRIBE_SCRAM,
            0,
            users=tuple(made(DESCRIBE_SCRAM, 0, "UserName", name=f"u{n}") for n in range(100_000)),
        ),
    ]


@case("ApiVersions, 200,000 at once")
def _(client: Client) -> Iterable[bytes]:
    return [frame(API_VERSIONS, 0) * 200_000]


@case("a heartbeat of 100 MB that is none")
def _(client: Client) -> Iterable[bytes]:
    payload = struct.pack(">hhih", 12, 4, 1, 5) + b"bench\x00" + b"\x05" * 100_000_000
    return [struct.pack(">i", len(payload)) + payload]


# the measurement


class Measured(NamedTuple):
    wait_ms: float
    request_s: float
    ended_s: float


@contextmanager
def broker(
    options: Iterable[str], data: bool, tree: str | None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    settings = [part for option in options for part in ("--set", option)]
    environment = dict(os.environ) if tree is None else {**os.environ, "PYTHONPATH": tree}
    with tempfile.TemporaryDirectory() as folder:
        kept = ["--data", folder] if data else []
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, "serve", "--port", "0", *settings, *kept],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=tree,
        )
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(b":")[2]), process
        finally:
            process.kill()
            process.wait()


def measure(name: str, data: bool, tree: str | None) -> Measured:
    prepare, options = CASES[name]
    with broker(options, data, tree) as (port, process):
        hostile = Client(port)
        requests = list(prepare(hostile))
        worst, over = [0.0], threading.Event()

        def ask_regularly() -> None:
            client, asked = Client(port), frame(API_VERSIONS, 0)
            while not over.is_set():
                begin_s = time.monotonic()
                client.send(asked)
                worst[0] = max(worst[0], time.monotonic() - begin_s)
                time.sleep(_EVERY_S)

        victim = threading.Thread(target=ask_regularly)
        victim.start()
        time.sleep(0.3)  # the schemas of the first requests are imported
        worst[0] = 0.0
        begin_s = time.monotonic()
        for request in requests:
            try:
                hostile.send(request)
            except TimeoutError:
                break
        request_s = time.monotonic() - begin_s
        time.sleep(0.2)
        over.set()
        victim.join()
        begin_s = time.monotonic()
        process.terminate()
        process.wait(_LONGEST_S)
        return Measured(worst[0] * 1000, request_s, time.monotonic() - begin_s)


class WithoutSockets(Client):
    """A broker in this process."""

    def __init__(self, options: Iterable[str]) -> None:
        self._now_ms = time.time_ns() // 1_000_000
        settings = dict(option.split("=", 1) for option in options)
        self._broker = make_broker(settings, {}, now_ms=self._now_ms)
        self._connection = 0
        self.turns_s: list[float] = []

    def send(self, payload: bytes) -> bytes:
        """Carry out the requests, and all that is left behind the last answer."""
        at, answer = 0, b""
        while at < len(payload):
            (length,) = struct.unpack_from(">i", payload, at)
            frame_of_one, at = payload[at + 4 : at + 4 + length], at + 4 + length
            self._connection += 1
            answer = self._turn(self._broker.receive, self._connection, _PEER, frame_of_one, self._now_ms)
            while self._broker.next_deadline() == self._now_ms or not answer:
                due_ms = self._broker.next_deadline()
                if due_ms is None or due_ms > self._now_ms + 1_000:
                    break
                self._now_ms = max(self._now_ms, due_ms)
                answer = self._turn(self._broker.fire, self._now_ms) or answer
        return answer[4:]

    def _turn(self, step: Callable[..., BrokerEffects], *arguments: Any) -> bytes:
        begin_s = time.thread_time()
        effects = step(*arguments)
        self.turns_s.append(time.thread_time() - begin_s)
        mine = [one.payload for one in effects.outputs if one.connection == self._connection]
        return mine[0] or b"" if mine else b""


def measure_turns(name: str) -> tuple[float, int, float]:
    """The longest turn in milliseconds, their number, and all of them in seconds."""
    prepare, options = CASES[name]
    client = WithoutSockets(options)
    requests = list(prepare(client))
    client.turns_s.clear()
    for request in requests:
        client.send(request)
    return max(client.turns_s) * 1000, len(client.turns_s), sum(client.turns_s)


def print_turns(names: Iterable[str], repeat: int) -> None:
    gc.set_threshold(*CYCLES)  # as `groupstorm serve` does
    print("| request | longest turn, ms of CPU | turns | all, s of CPU |")
    print("|---|---:|---:|---:|")
    for name in names:
        longest_ms, turns, all_s = min(measure_turns(name) for _ in range(repeat))
        print(f"| {name} | {longest_ms:,.0f} | {turns:,} | {all_s:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", action="store_true", help="the broker keeps everything in a folder")
    parser.add_argument("--only", default="", help="the rows whose names contain this word")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tree", help="measure the sources of this folder")
    parser.add_argument("--turns", action="store_true", help="without sockets, in CPU time")
    given = parser.parse_args()
    names = [name for name in CASES if given.only in name]
    if given.turns:
        print_turns(names, given.repeat)
        return
    print("| request | longest wait of another client, ms | request, s | SIGTERM, s |")
    print("|---|---:|---:|---:|")
    for name in names:
        runs = [measure(name, given.data, given.tree) for _ in range(given.repeat)]
        wait_ms, request_s, ended_s = (min(values) for values in zip(*runs, strict=True))
        print(f"| {name} | {wait_ms:,.0f} | {request_s:.1f} | {ended_s:.1f} |", flush=True)


if __name__ == "__main__":
    main()
