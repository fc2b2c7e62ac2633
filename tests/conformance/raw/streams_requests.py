"""The requests of streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.raw.requests import REBALANCE_MS
from tests.conformance.raw.steps import MemberEpochOf, MemberOf, OwnMemberId, Request

#: A field that a heartbeat leaves out keeps its value.
LEFT_OUT_MS = -1

#: Subtopology -> tasks.
Tasks = Mapping[str, Sequence[int]]


def topic(
    name: str, partitions: int = 0, replicas: int = 0, configs: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """An internal topic of a topology."""
    return {
        "name": name,
        "partitions": partitions,
        "replication_factor": replicas,
        "topic_configs": [{"key": key, "value": value} for key, value in (configs or {}).items()],
    }


def subtopology(*sources: str, name: str = "0", **more: Any) -> dict[str, Any]:
    """``more``: the other fields by kio's names."""
    return {"subtopology_id": name, "source_topics": sources, **more}


def topology(*subtopologies: Mapping[str, Any], epoch: int = 0) -> dict[str, Any]:
    return {"epoch": epoch, "subtopologies": subtopologies}


#: It reads the case's topic and keeps nothing.
STATELESS = topology(subtopology("{topic}"))


def beat(
    *,
    version: int = 1,
    group: str = "{group}",
    member: str | None = None,
    epoch: str | int = "$",
    instance: str | None = None,
    rack: str | None = None,
    rebalance: int = LEFT_OUT_MS,
    topology: Mapping[str, Any] | None = None,
    active: Tasks | None = None,
    standby: Tasks | None = None,
    warmup: Tasks | None = None,
    process: str | OwnMemberId | None = None,
    endpoint: tuple[str, int] | None = None,
    tags: Mapping[str, str] | None = None,
    offsets: Sequence[tuple[str, int, int]] | None = None,
    end_offsets: Sequence[tuple[str, int, int]] | None = None,
    shutdown: bool = False,
    endpoint_epoch: int = -1,
) -> Request:
    """A heartbeat. ``member``: None: the sender's short name; offsets: subtopology, task, offset."""
    fields = {
        "group_id": group,
        "member_id": OwnMemberId() if member is None else MemberOf(member),
        "member_epoch": MemberEpochOf(epoch),
        "endpoint_information_epoch": endpoint_epoch,
        "instance_id": instance,
        "rack_id": rack,
        "rebalance_timeout": rebalance,
        "topology": topology,
        "active_tasks": _listed(active),
        "standby_tasks": _listed(standby),
        "warmup_tasks": _listed(warmup),
        "process_id": process,
        "user_endpoint": endpoint and {"host": endpoint[0], "port": endpoint[1]},
        "client_tags": tags and [{"key": key, "value": value} for key, value in tags.items()],
        "task_offsets": _offsets(offsets),
        "task_end_offsets": _offsets(end_offsets),
        "shutdown_application": shutdown,
    }
    return Request("StreamsGroupHeartbeat", version, fields)


def enter(**more: Any) -> Request:
    """The heartbeat of a member that joins."""
    return beat(
        **{
            "epoch": 0,
            "topology": STATELESS,
            "rebalance": REBALANCE_MS,
            "process": OwnMemberId(),
            **owning(),
            **more,
        }
    )


def owning(active: Tasks | None = None, standby: Tasks | None = None) -> dict[str, Any]:
    """A member that says what it owns names all three kinds of tasks."""
    return {"active": active or {}, "standby": standby or {}, "warmup": {}}


def describe_streams(
    *, version: int = 1, groups: Sequence[str] = ("{group}",), description: bool = False
) -> Request:
    fields = {"group_ids": groups, "include_topology_description": description}
    return Request("StreamsGroupDescribe", version, fields)


def update_description(*, group: str = "{group}", member: str = "a", epoch: int = 0) -> Request:
    fields = {
        "group_id": group,
        "member_id": MemberOf(member),
        "topology_epoch": epoch,
        "topology_description": {"subtopologies": [], "global_stores": []},
    }
    return Request("StreamsGroupTopologyDescriptionUpdate", 0, fields)


def _listed(tasks: Tasks | None) -> list[dict[str, Any]] | None:
    if tasks is None:
        return None
    return [{"subtopology_id": name, "partitions": numbers} for name, numbers in tasks.items()]


def _offsets(offsets: Sequence[tuple[str, int, int]] | None) -> list[dict[str, Any]] | None:
    if offsets is None:
        return None
    return [
        {"subtopology_id": name, "partition": number, "offset": offset} for name, number, offset in offsets
    ]
