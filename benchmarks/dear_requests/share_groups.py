"""Dear requests about share groups, their records and their start offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from benchmarks.dear_requests.frames import (
    ALTER_SHARE_OFFSETS,
    DELETE_SHARE_OFFSETS,
    DESCRIBE_SHARE_OFFSETS,
    INCREMENTAL,
    METADATA,
    SHARE_ACKNOWLEDGE,
    SHARE_FETCH,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    Client,
    case,
    frame,
    made,
    make_topics,
)
from benchmarks.dear_requests.records import batch, produce_frame

_GROUP = 32
_ACCEPT = (1,)
_MOST_LOCKS = 2_000  # group.share.partition.max.record.locks


def _heartbeat(names: Sequence[str]) -> bytes:
    own = {"group_id": "g", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0, "rack_id": None}
    return frame(SHARE_GROUP_HEARTBEAT, 1, **own, subscribed_topic_names=tuple(names))


def _from_the_first_record(client: Client) -> None:
    config = made(
        *(INCREMENTAL, 1, "AlterableConfig"),
        name="share.auto.offset.reset",
        value="earliest",
        config_operation=0,
    )
    of_group = {"resource_type": _GROUP, "resource_name": "g", "configs": (config,)}
    client.ask(INCREMENTAL, 1, resources=(made(INCREMENTAL, 1, "AlterConfigsResource", **of_group),))


def _topic_ids(client: Client) -> list[UUID]:
    return [topic.topic_id for topic in client.ask(METADATA, 12, topics=None).topics]


def _asked(
    api_key: int,
    ids: Iterable[UUID],
    partitions: int,
    epoch: int,
    ranges: tuple[Any, ...] = (),
    wait_s: int = 0,
) -> bytes:
    """A ShareFetch or ShareAcknowledge, with these ranges of each partition. A fetch with ``wait_s`` waits so
    long for a record."""
    kind = "Fetch" if api_key == SHARE_FETCH else "Acknowledge"
    listed = tuple(
        made(api_key, 2, f"{kind}Partition", partition_index=index, acknowledgement_batches=ranges)
        for index in range(partitions)
    )
    topics = tuple(made(api_key, 2, f"{kind}Topic", topic_id=one, partitions=listed) for one in ids)
    own = {"group_id": "g", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "share_session_epoch": epoch}
    limits = {"max_wait": timedelta(seconds=wait_s), "min_bytes": min(wait_s, 1), "max_bytes": 100_000_000}
    limits["max_records"] = 100_000
    return frame(api_key, 2, topics=topics, **own, **limits, batch_size=1_000)


def _ranges(api_key: int, count: int) -> tuple[Any, ...]:
    return tuple(
        made(
            *(api_key, 2, "AcknowledgementBatch"),
            first_offset=offset,
            last_offset=offset,
            acknowledge_types=_ACCEPT,
        )
        for offset in range(count)
    )


def _acquired(client: Client, partitions: int = 50, records: int = _MOST_LOCKS) -> list[UUID]:
    """A member has a batch of so many records of each partition."""
    names = make_topics(client, 1, partitions)
    _from_the_first_record(client)
    client.send(_heartbeat(names))
    client.send(produce_frame(names, partitions, batch([b"x"] * records)))
    ids = _topic_ids(client)
    for epoch in range(3):
        client.send(_asked(SHARE_FETCH, ids, partitions, epoch))
    return ids


@case("ShareFetch, 20,000 partitions, new session and its next request")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 4, 5_000)
    client.send(_heartbeat(names))
    ids = _topic_ids(client)
    return [_asked(SHARE_FETCH, ids, 5_000, 0), _asked(SHARE_FETCH, (), 0, 1)]


def _fetch_waits(client: Client) -> list[str]:
    """A share fetch waits for records of 20,000 partitions. Returns the topics."""
    names = make_topics(client, 4, 5_000)
    client.send(_heartbeat(names))
    ids = _topic_ids(client)
    client.send(_asked(SHARE_FETCH, ids, 5_000, 0))
    client.leave_waiting(_asked(SHARE_FETCH, (), 0, 1, wait_s=60))
    return names


@case("Produce, a record, while a ShareFetch waits on 20,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [produce_frame(_fetch_waits(client)[-1:], 1, batch([b"x"]))]


@case("Produce, 20,000 partitions, a batch each, while a ShareFetch waits on them")
def _(client: Client) -> Iterable[bytes]:
    return [produce_frame(_fetch_waits(client), 5_000, batch([b"x" * 100]))]


@case("ShareFetch, 20,000 partitions, waits 1 s")
def _(client: Client) -> Iterable[bytes]:
    client.send(_heartbeat(make_topics(client, 4, 5_000)))
    client.send(_asked(SHARE_FETCH, _topic_ids(client), 5_000, 0))
    return [_asked(SHARE_FETCH, (), 0, 1, wait_s=1)]


@case("ShareFetch, 100,000 records of 50 partitions")
def _(client: Client) -> Iterable[bytes]:
    names = make_topics(client, 1, 50)
    _from_the_first_record(client)
    client.send(_heartbeat(names))
    ids = _topic_ids(client)
    client.send(_asked(SHARE_FETCH, ids, 50, 0))
    client.send(produce_frame(names, 50, batch([b"x"] * _MOST_LOCKS)))
    return [_asked(SHARE_FETCH, ids, 50, 1)]


@case("ShareFetch, 100,000 ranges of 50 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_asked(SHARE_FETCH, _acquired(client), 50, 3, _ranges(SHARE_FETCH, _MOST_LOCKS))]


@case("ShareAcknowledge, 100,000 ranges of 50 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_asked(SHARE_ACKNOWLEDGE, _acquired(client), 50, 3, _ranges(SHARE_ACKNOWLEDGE, _MOST_LOCKS))]


@case("ShareAcknowledge, 100,000 ranges of a partition")
def _(client: Client) -> Iterable[bytes]:
    return [_asked(SHARE_ACKNOWLEDGE, _acquired(client), 1, 3, _ranges(SHARE_ACKNOWLEDGE, 100_000))]


@case("ShareAcknowledge, 10,000 ranges of a record batch")
def _(client: Client) -> Iterable[bytes]:
    ids = _acquired(client, 1, 10_000)
    return [_asked(SHARE_ACKNOWLEDGE, ids, 1, 3, _ranges(SHARE_ACKNOWLEDGE, 10_000))]


@case("ShareAcknowledge, 100,000 ranges of a record batch")
def _(client: Client) -> Iterable[bytes]:
    ids = _acquired(client, 1, 100_000)
    return [_asked(SHARE_ACKNOWLEDGE, ids, 1, 3, _ranges(SHARE_ACKNOWLEDGE, 100_000))]


@case("share heartbeat, subscription of 20,000 topics that are there")
def _(client: Client) -> Iterable[bytes]:
    return [_heartbeat(make_topics(client, 20_000))]


@case("share heartbeat, subscription of 70,000 topics, which fit into a batch")
def _(client: Client) -> Iterable[bytes]:
    return [_heartbeat([f"topic-{number}" for number in range(70_000)])]


@case("share heartbeat, subscription of 4 topics of 5,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_heartbeat(make_topics(client, 4, 5_000))]


def _altered(client: Client, topics: int, partitions: int) -> bytes:
    kind = "AlterShareGroupOffsetsRequest"
    offsets = tuple(
        made(ALTER_SHARE_OFFSETS, 0, f"{kind}Partition", partition_index=index, start_offset=0)
        for index in range(partitions)
    )
    named = tuple(
        made(ALTER_SHARE_OFFSETS, 0, f"{kind}Topic", topic_name=name, partitions=offsets)
        for name in make_topics(client, topics, partitions)
    )
    # the group is made by its first member
    client.send(_heartbeat([]))
    gone = {"group_id": "g", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": -1, "rack_id": None}
    client.send(frame(SHARE_GROUP_HEARTBEAT, 1, **gone, subscribed_topic_names=None))
    return frame(ALTER_SHARE_OFFSETS, 0, group_id="g", topics=named)


@case("AlterShareGroupOffsets, 4 topics of 5,000 partitions")
def _(client: Client) -> Iterable[bytes]:
    return [_altered(client, 4, 5_000)]


@case("AlterShareGroupOffsets, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    return [_altered(client, 20_000, 1)]


@case("DescribeShareGroupOffsets, all 20,000 of a group")
def _(client: Client) -> Iterable[bytes]:
    client.send(_altered(client, 4, 5_000))
    group = made(
        DESCRIBE_SHARE_OFFSETS, 1, "DescribeShareGroupOffsetsRequestGroup", group_id="g", topics=None
    )
    return [frame(DESCRIBE_SHARE_OFFSETS, 1, groups=(group,))]


@case("DeleteShareGroupOffsets, 20,000 topics")
def _(client: Client) -> Iterable[bytes]:
    client.send(_altered(client, 20_000, 1))
    kind = "DeleteShareGroupOffsetsRequestTopic"
    topics = tuple(
        made(DELETE_SHARE_OFFSETS, 0, kind, topic_name=f"topic-{number}") for number in range(20_000)
    )
    return [frame(DELETE_SHARE_OFFSETS, 0, group_id="g", topics=topics)]


@case("ShareGroupDescribe, 100,000 unknown groups")
def _(client: Client) -> Iterable[bytes]:
    return [frame(SHARE_GROUP_DESCRIBE, 1, group_ids=tuple(f"unknown-{number}" for number in range(100_000)))]
