"""Dear requests about topics, configurations, ACLs, quotas and users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.dear_requests.frames import (
    ALTER_CONFIGS,
    ALTER_QUOTAS,
    ALTER_SCRAM,
    API_VERSIONS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_PARTITIONS,
    DESCRIBE_QUOTAS,
    DESCRIBE_SCRAM,
    INCREMENTAL,
    LIST_CONFIG_RESOURCES,
    METADATA,
    Client,
    case,
    frame,
    made,
    make_topics,
)


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


@case("DescribeConfigs, 10,000 resources")
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
        for name in make_topics(client, 1_000) * 10
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


@case("IncrementalAlterConfigs, 100,000 groups, and ListConfigResources of them")
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
    return [frame(INCREMENTAL, 1, resources=resources), frame(LIST_CONFIG_RESOURCES, 1, resource_types=())]


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


@case("DeleteAcls, all of 100,000, and 300 filters", _AUTHORIZED, "super.users=User:ANONYMOUS")
def _(client: Client) -> Iterable[bytes]:
    client.send(_acls(100_000))
    nothing = {"resource_type_filter": 3, "pattern_type_filter": 1, "permission_type": 1, **_ALL}
    everything = {**nothing, "resource_type_filter": 1}
    filters = (made(DELETE_ACLS, 2, "DeleteAclsFilter", **nothing),) * 300
    return [
        frame(DELETE_ACLS, 2, filters=filters),
        frame(DELETE_ACLS, 2, filters=(made(DELETE_ACLS, 2, "DeleteAclsFilter", **everything),)),
    ]


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


@case("ApiVersions, 50,000 at once")
def _(client: Client) -> Iterable[bytes]:
    return [frame(API_VERSIONS, 0) * 50_000]
