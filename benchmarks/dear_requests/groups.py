"""Dear requests about groups and their offsets."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from benchmarks.dear_requests.frames import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    GROUP_DESCRIBE,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
    Client,
    case,
    frame,
    made,
    make_topics,
)
from groupstorm.protocol.codec import decoder, response_types


def make_groups(client: Client, count: int) -> list[str]:
    """Each has one committed offset."""
    make_topics(client, 1)
    names = [f"group-{number}" for number in range(count)]
    partition = made(OFFSET_COMMIT, 8, "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topic = made(OFFSET_COMMIT, 8, "OffsetCommitRequestTopic", name="topic-0", partitions=(partition,))
    for name in names:
        client.send(frame(OFFSET_COMMIT, 8, group_id=name, generation_id_or_member_epoch=-1, topics=(topic,)))
    return names


def heartbeat(regex: str | None, group: str = "g", names: tuple[str, ...] = ()) -> bytes:
    return frame(HEARTBEAT, 1, **_member(regex, group, names))


def _member(regex: str | None = None, group: str = "g", names: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "group_id": group,
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "member_epoch": 0,
        "rebalance_timeout": timedelta(seconds=60),
        "server_assignor": None,
        "rack_id": None,
        "instance_id": None,
        "subscribed_topic_names": names,
        "subscribed_topic_regex": regex,
        "topic_partitions": (),
    }


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


@case("ConsumerGroupDescribe, 10,000 groups of a member")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 1)
    groups = tuple(f"group-{number}" for number in range(10_000))
    for group in groups:
        client.send(heartbeat(None, group, tuple(names)))
    return [frame(GROUP_DESCRIBE, 1, group_ids=groups)]


@case("ConsumerGroupDescribe, a group of 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    client.send(heartbeat(None, names=tuple(make_topics(client, 4, 5_000))))
    return [frame(GROUP_DESCRIBE, 1, group_ids=("g",))]


@case("heartbeat that says 200,000 partitions are owned")
def _(client: Client) -> Iterable[bytes]:
    first = client.ask(HEARTBEAT, 1, **_member(names=tuple(make_topics(client, 4, 5_000))))
    topics = client.ask(METADATA, 12, topics=None).topics
    owned = tuple(
        made(HEARTBEAT, 1, "TopicPartitions", topic_id=one.topic_id, partitions=tuple(range(50_000)))
        for one in topics
    )
    own = {**_member(), "member_epoch": first.member_epoch, "topic_partitions": owned}
    return [frame(HEARTBEAT, 1, **{**own, "rebalance_timeout": timedelta(milliseconds=-1)})]


@case("heartbeat, subscription of 20,000 topics that are there")
def _(client: Client) -> Iterable[bytes]:
    return [heartbeat(None, names=tuple(make_topics(client, 20_000)))]


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
        client.send(commit_frame(OFFSET_COMMIT, 8, [name], 5_000))
    group = made(OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id="g", topics=None)
    return [frame(OFFSET_FETCH, 8, groups=(group,))]


@case("OffsetFetch, 200,000 named partitions")
def _(client: Client) -> Iterable[bytes]:
    indexes = tuple(range(200_000))
    topic = made(OFFSET_FETCH, 8, "OffsetFetchRequestTopics", name="topic-0", partition_indexes=indexes)
    group = made(OFFSET_FETCH, 8, "OffsetFetchRequestGroup", group_id="g", topics=(topic,))
    return [frame(OFFSET_FETCH, 8, groups=(group,))]


def commit_frame(api_key: int, version: int, topics: Sequence[str], partitions: int, **more: Any) -> bytes:
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
    return [commit_frame(OFFSET_COMMIT, 8, make_topics(client, 4, 5_000), 5_000)]


@case("OffsetCommit, 100,000 unknown partitions")
def _(client: Client) -> Iterable[bytes]:
    return [commit_frame(OFFSET_COMMIT, 8, ["unknown"], 100_000)]


@case("OffsetDelete, 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 4, 5_000)
    for name in names:
        client.send(commit_frame(OFFSET_COMMIT, 8, [name], 5_000))
    asked = tuple(
        made(OFFSET_DELETE, 0, "OffsetDeleteRequestPartition", partition_index=index)
        for index in range(5_000)
    )
    topics = tuple(
        made(OFFSET_DELETE, 0, "OffsetDeleteRequestTopic", name=name, partitions=asked) for name in names
    )
    return [frame(OFFSET_DELETE, 0, group_id="g", topics=topics)]


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
    return [heartbeat(None, names=tuple(f"topic-{number}" for number in range(200_000)))]


@case("a heartbeat of 100 MB that is none")
def _(client: Client) -> Iterable[bytes]:
    payload = struct.pack(">hhih", 12, 4, 1, 5) + b"bench\x00" + b"\x05" * 100_000_000
    return [struct.pack(">i", len(payload)) + payload]


@case("OffsetCommit, 12,000 partitions, which fit into a batch")
def _(client: Client) -> Iterable[bytes]:
    return [commit_frame(OFFSET_COMMIT, 8, make_topics(client, 3, 4_000), 4_000)]


@case("heartbeat, subscription of 70,000 topics, which fit into a batch")
def _(client: Client) -> Iterable[bytes]:
    return [heartbeat(None, names=tuple(f"topic-{number}" for number in range(70_000)))]


@case("LeaveGroup, 100,000 members of a group that is there", "group.initial.rebalance.delay.ms=0")
def _(client: Client) -> Iterable[bytes]:
    client.send(_join(b"x"))
    members = tuple(
        made(LEAVE_GROUP, 4, "MemberIdentity", member_id=f"m{number}") for number in range(100_000)
    )
    return [frame(LEAVE_GROUP, 4, group_id="big", members=members)]


@case(
    "streams heartbeat, topology of 10,000 subtopologies, twice",
    "group.streams.initial.rebalance.delay.ms=0",
    "group.streams.assignment.interval.ms=0",
)
def _(client: Client) -> Iterable[bytes]:
    """The changelogs are created behind the first heartbeat; the second one gets the tasks."""
    key = STREAMS_GROUP_HEARTBEAT
    subtopologies = tuple(
        made(
            *(key, 1, "Subtopology"),
            subtopology_id=str(number),
            source_topics=(name,),
            state_changelog_topics=(made(key, 1, "TopicInfo", name=f"g-{number}-changelog"),),
        )
        for number, name in enumerate(make_topics(client, 10_000))
    )
    own = {
        "group_id": "g",
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "process_id": "p",
        "endpoint_information_epoch": -1,
    }
    kinds = ("active", "standby", "warmup")
    lists = dict.fromkeys([*(f"{kind}_tasks" for kind in kinds), "task_offsets", "task_end_offsets"], ())
    timeout = {"rebalance_timeout": timedelta(seconds=60)}
    topology = made(key, 1, "Topology", epoch=0, subtopologies=subtopologies)
    first = frame(key, 1, **own, **timeout, **lists, topology=topology)
    return [first, frame(key, 1, **own, **timeout, **lists, topology=topology)]
