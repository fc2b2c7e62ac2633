"""The requests of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.broker.wire import batch
from tests.conformance.raw.steps import MemberEpochOf, MemberOf, OwnMemberId, Request

#: Ranges of acknowledgements: first and last offset, types.
Ranges = Sequence[tuple[int, int, Sequence[int]]]
#: Partition -> its acknowledgements.
Acks = Mapping[int, Ranges]
_NOBODY = "00000000-0000-0000-0000-000000000001"


def beat(
    *,
    group: str = "{group}",
    member: str | None = None,
    epoch: str | int = "$",
    topics: Sequence[str] | None = None,
    rack: str | None = None,
) -> Request:
    """A heartbeat. ``member``: None: the sender's short name."""
    fields = {
        "group_id": group,
        "member_id": _member(member),
        "member_epoch": MemberEpochOf(epoch),
        "rack_id": rack,
        "subscribed_topic_names": topics,
    }
    return Request("ShareGroupHeartbeat", 1, fields)


def enter(**more: Any) -> Request:
    """The heartbeat of a member that joins."""
    return beat(**{"epoch": 0, "topics": ("{topic}",), **more})


def describe_share(*groups: str) -> Request:
    fields = {"group_ids": groups or ("{group}",), "include_authorized_operations": False}
    return Request("ShareGroupDescribe", 1, fields)


def fetch(epoch: int, acks: Acks | None = None, *, member: str | None = None, **more: Any) -> Request:
    """``acks``: the partitions in the request, each with its acknowledgements."""
    fields = {
        "group_id": "{group}",
        "member_id": _member(member),
        "share_session_epoch": epoch,
        "max_wait": 200,
        "min_bytes": 1,
        "max_bytes": 1_000_000,
        "max_records": 100,
        "batch_size": 100,
        "topics": _topics(acks, more.pop("topic_id", "{topic_id}")),
    }
    return Request("ShareFetch", 2, {**fields, **more})


def acknowledge(epoch: int, acks: Acks | None = None, *, member: str | None = None, **more: Any) -> Request:
    fields = {
        "group_id": "{group}",
        "member_id": _member(member),
        "share_session_epoch": epoch,
        "topics": _topics(acks, more.pop("topic_id", "{topic_id}")),
    }
    return Request("ShareAcknowledge", more.pop("version", 2), {**fields, **more})


def unknown_topic() -> dict[str, str]:
    """No topic has this id."""
    return {"topic_id": _NOBODY}


def produce(partition: int, *values: bytes) -> Request:
    """One record batch."""
    records = {"index": partition, "records": batch(values)}
    topics = [{"name": "{topic}", "partition_data": [records]}]
    fields = {"transactional_id": None, "acks": -1, "timeout": 5_000, "topic_data": topics}
    return Request("Produce", 9, fields)


def describe_offsets(
    partitions: Mapping[str, Sequence[int]] | None = None, group: str = "{group}"
) -> Request:
    topics = None
    if partitions is not None:
        topics = [{"topic_name": name, "partitions": numbers} for name, numbers in partitions.items()]
    return Request("DescribeShareGroupOffsets", 1, {"groups": [{"group_id": group, "topics": topics}]})


def alter_offsets(topic: str, offsets: Mapping[int, int], group: str = "{group}") -> Request:
    partitions = [{"partition_index": number, "start_offset": to} for number, to in offsets.items()]
    topics = [{"topic_name": topic, "partitions": partitions}]
    return Request("AlterShareGroupOffsets", 0, {"group_id": group, "topics": topics})


def delete_offsets(*topics: str, group: str = "{group}") -> Request:
    listed = [{"topic_name": topic} for topic in topics]
    return Request("DeleteShareGroupOffsets", 0, {"group_id": group, "topics": listed})


def _member(member: str | None) -> OwnMemberId | MemberOf:
    return OwnMemberId() if member is None else MemberOf(member)


def _topics(acks: Acks | None, topic_id: str) -> list[dict[str, Any]]:
    if acks is None:
        return []
    partitions = [
        {
            "partition_index": number,
            "acknowledgement_batches": [
                {"first_offset": first, "last_offset": last, "acknowledge_types": types}
                for first, last, types in ranges
            ],
        }
        for number, ranges in acks.items()
    ]
    return [{"topic_id": topic_id, "partitions": partitions}]
