"""The requests of consumer groups (KIP-848) and of the configurations of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.raw.requests import REBALANCE_MS, commit, fetch_offsets
from tests.conformance.raw.steps import MemberEpochOf, MemberOf, OwnedBy, OwnMemberId, Request

#: A field that a heartbeat leaves out keeps its value.
LEFT_OUT_MS = -1
LEAVE, LEAVE_FOR_A_WHILE = -1, -2

#: AlterConfigOp.OpType
SET, DELETE, APPEND, SUBTRACT = range(4)
#: ConfigResource.Type
TOPIC, GROUP = 2, 32

Partitions = Mapping[str, Sequence[int]]


def beat(
    *,
    version: int = 1,
    group: str = "{group}",
    member: str | None = None,
    epoch: str | int = "$",
    instance: str | None = None,
    rack: str | None = None,
    rebalance: int = LEFT_OUT_MS,
    topics: Sequence[str] | None = None,
    regex: str | None = None,
    assignor: str | None = None,
    owned: OwnedBy | Partitions | None = None,
) -> Request:
    """A heartbeat. ``member``: None: the sender's short name; ``owned``: topic id -> partitions."""
    listed: Any = owned
    if isinstance(owned, Mapping):
        listed = [{"topic_id": topic, "partitions": partitions} for topic, partitions in owned.items()]
    fields = {
        "group_id": group,
        "member_id": OwnMemberId() if member is None else MemberOf(member),
        "member_epoch": MemberEpochOf(epoch),
        "instance_id": instance,
        "rack_id": rack,
        "rebalance_timeout": rebalance,
        "subscribed_topic_names": topics,
        "subscribed_topic_regex": regex,
        "server_assignor": assignor,
        "topic_partitions": listed,
    }
    return Request("ConsumerGroupHeartbeat", version, fields)


def enter(
    *, topics: Sequence[str] | None = ("{topic}",), rebalance: int = REBALANCE_MS, **more: Any
) -> Request:
    """The heartbeat of a member that joins."""
    return beat(**{"epoch": 0, "topics": topics, "rebalance": rebalance, "owned": {}, **more})


def beat_with_everything(*, topics: Sequence[str] | None = ("{topic}",), **more: Any) -> Request:
    """The heartbeat of a member that may have missed an answer."""
    return beat(**{"topics": topics, "rebalance": REBALANCE_MS, "owned": OwnedBy(), **more})


def commit_as(
    offset: int, *, version: int = 9, epoch: str | int = "$", partition: int = 0, member: str | None = None
) -> Request:
    """OffsetCommit of a member at its epoch."""
    request = commit(offset, version=version, partition=partition, topic="{topic}")
    return request._replace(
        fields={
            **request.fields,
            "member_id": OwnMemberId() if member is None else MemberOf(member),
            "generation_id_or_member_epoch": MemberEpochOf(epoch),
            "generation_id": MemberEpochOf(epoch),
        }
    )


def fetch_as(
    *, version: int = 9, epoch: str | int = "$", member: str | None = None, partition: int = 0
) -> Request:
    """OffsetFetch of a member at its epoch."""
    request = fetch_offsets(partition, version=version)
    (group,) = request.fields["groups"]
    named = {
        **group,
        "member_id": OwnMemberId() if member is None else MemberOf(member),
        "member_epoch": MemberEpochOf(epoch),
    }
    return request._replace(fields={**request.fields, "groups": [named]})


def describe_consumers(*, version: int = 1, groups: Sequence[str] = ("{group}",)) -> Request:
    return Request("ConsumerGroupDescribe", version, {"group_ids": groups})


def alter_configs(
    *changes: tuple[str, int, str | None],
    name: str = "{group}",
    kind: int = GROUP,
    version: int = 1,
    only_validate: bool = False,
) -> Request:
    """IncrementalAlterConfigs, of the case's group. ``changes``: (name, operation, value)."""
    configs = [{"name": what, "config_operation": how, "value": value} for what, how, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return Request(
        "IncrementalAlterConfigs", version, {"resources": [resource], "validate_only": only_validate}
    )


def describe_configs(*names: str, version: int = 4, synonyms: bool = True) -> Request:
    """DescribeConfigs of a group; all configurations if none are named."""
    resource = {"resource_type": GROUP, "resource_name": "{group}", "configuration_keys": list(names) or None}
    return Request("DescribeConfigs", version, {"resources": [resource], "include_synonyms": synonyms})
