"""Answers and states of streams groups as JSON values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from groupstorm.assignors.streams.groups import Task, TaskIds
from groupstorm.coordinator.modern.group import M, ModernGroup
from groupstorm.coordinator.modern.member import ModernMember
from groupstorm.coordinator.script.clients import Names
from groupstorm.coordinator.streams.group import StreamsGroup, TaskOffsets
from groupstorm.coordinator.streams.member import StreamsMember, Tasks, listed
from groupstorm.coordinator.streams.messages import (
    DescribedStreamsMember,
    DescribeStreamsGroupResponse,
    DescriptionNode,
    EndpointPartitions,
    StreamsGroupHeartbeatResponse,
    TopologyDescription,
)
from groupstorm.coordinator.streams.topology import Status, TopicInfo, Topology

_KINDS = ("active", "standby", "warmup")


def print_heartbeat(response: StreamsGroupHeartbeatResponse, *, is_4_4: bool) -> dict[str, Any]:
    """An answer to a heartbeat. Kafka 4.3.1 has three fields less."""
    endpoints = response.endpoints
    printed = {
        "error": response.error.name,
        "member": response.member_id,
        "epoch": response.member_epoch,
        "heartbeat_ms": response.heartbeat_interval_ms,
        "statuses": [[Status(code).name, detail] for code, detail in response.statuses],
        **dict(
            zip(
                _KINDS,
                map(_by_subtopology, (response.active, response.standby, response.warmup)),
                strict=True,
            )
        ),
        "endpoint_epoch": response.endpoint_epoch,
        "endpoints": None if endpoints is None else sorted(map(_endpoint, endpoints), key=_endpoint_key),
        "create": {
            name: [topic.partitions, topic.replication or -1, dict(topic.configs)]
            for name, topic in response.to_create.items()
        },
    }
    if is_4_4:
        printed["recovery_lag"] = response.acceptable_recovery_lag
        printed["task_offset_ms"] = response.task_offset_interval_ms
        printed["topology_required"] = response.description_required
    return printed


def _by_subtopology(tasks: TaskIds | None) -> dict[str, list[int]] | None:
    return None if tasks is None else {name: list(numbers) for name, numbers in tasks}


def _endpoint(entry: EndpointPartitions) -> list[Any]:
    host, port, *tables = entry
    return [host, port, *({topic: list(numbers) for topic, numbers in table.items()} for table in tables)]


def _endpoint_key(entry: list[Any]) -> tuple[str, int, str]:
    return entry[0], entry[1], json.dumps(entry, separators=(",", ":"), sort_keys=True)


def print_described(response: DescribeStreamsGroupResponse, names: Names, *, is_4_4: bool) -> dict[str, Any]:
    """An answer to a description. Kafka 4.3.1 has neither assignor nor the topology's description."""
    members = sorted(response.members, key=lambda one: names.key(names.name(one.member.member_id)))
    printed = {
        "error": response.error.name,
        "state": response.state,
        "epoch": response.epoch,
        "assignment_epoch": response.assignment_epoch,
        "topology": None if response.topology is None else _topology(response.topology),
        "members": [_described_member(member, names, is_4_4=is_4_4) for member in members],
    }
    if is_4_4:
        printed["assignor"] = response.assignor
        printed["description_status"] = response.description_status.name
        description = response.description
        printed["description"] = None if description is None else _description(description)
    return printed


def _topology(topology: Topology) -> dict[str, Any]:
    return {
        "epoch": topology.epoch,
        "subtopologies": [
            {
                "id": one.id,
                "sources": list(one.sources),
                "sinks": list(one.sinks),
                "repartition": list(map(_topic, one.repartition)),
                "changelogs": list(map(_topic, one.changelogs)),
            }
            for one in topology.subtopologies
        ],
    }


def _topic(topic: TopicInfo) -> list[Any]:
    return [topic.name, topic.partitions, topic.replication, dict(topic.configs)]


def _described_member(described: DescribedStreamsMember, names: Names, *, is_4_4: bool) -> dict[str, Any]:
    member = described.member
    printed: dict[str, Any] = {
        "member": names.name(member.member_id),
        "epoch": member.epoch,
        "instance": member.instance,
        "rack": member.rack,
        "client_id": member.client_id,
        "topology_epoch": member.topology_epoch,
        "process": member.process,
        "endpoint": None if member.endpoint is None else list(member.endpoint),
        "tags": dict(member.tags),
        "assigned": _kinds(member.assigned.without_epochs()),
        "target": _kinds(described.target),
    }
    if is_4_4:
        printed["task_offsets"] = _nested(described.task_offsets.items())
        printed["task_end_offsets"] = _nested(described.task_end_offsets.items())
    return printed


def _description(description: TopologyDescription) -> dict[str, Any]:
    return {
        "subtopologies": [
            {"id": name, "nodes": list(map(_node, nodes))} for name, nodes in description.subtopologies
        ],
        "globals": [
            {"source": _node(source), "processor": _node(processor)}
            for source, processor in description.global_stores
        ],
    }


def _node(node: DescriptionNode) -> dict[str, Any]:
    """A node with what its kind has: a source its topics, a processor its stores, a sink its topic."""
    return {
        "name": node.name,
        "type": node.kind,
        "topics": sorted(set(node.topics)) if node.kind == 1 else [],
        "sink": node.sink if node.kind == 3 else None,
        "stores": sorted(set(node.stores)) if node.kind == 2 else [],
        "next": sorted(set(node.successors)),
    }


def in_order(group: ModernGroup[M, Any], names: Names) -> list[M]:
    """The members in the order of their names."""
    return sorted(group.members.values(), key=lambda member: names.key(names.name(member.member_id)))


def head(group: ModernGroup[Any, Any]) -> dict[str, Any]:
    """The fields with which the state of every group of the newer protocols begins."""
    return {
        "type": group.kind,
        "state": group.state.value,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
    }


def head_of_member(member: ModernMember, names: Names) -> dict[str, Any]:
    """The fields with which the state of every member of such a group begins."""
    return {
        "member": names.name(member.member_id),
        "epoch": member.epoch,
        "previous_epoch": member.previous_epoch,
        "state": member.state.value,
    }


def print_streams_group(group: StreamsGroup, names: Names) -> dict[str, Any]:
    """A group's state."""
    configured = group.configured
    facts = group.facts
    described = [facts.stored_epoch, facts.failed_epoch]
    printed: dict[str, Any] = {
        **head(group),
        "topology_epoch": None if group.topology is None else group.topology.epoch,
        "validated_epoch": facts.validated_epoch,
        "configured": None,
        "endpoint_epoch": group.endpoint_epoch,
        "shutdown": group.shutdown_member,
        "configs": dict(facts.configs),
        "members": [_member(group, member, names) for member in in_order(group, names)],
        **({} if described == [-1, -1] else {"description_epochs": described}),
    }
    if configured is not None:
        tasks = configured.subtopologies
        printed["configured"] = {
            "problem": None if configured.problem is None else Status(configured.problem[0]).name,
            "tasks": None if tasks is None else {name: one.tasks for name, one in tasks.items()},
            "missing": sorted(configured.to_create),
        }
    return printed


def _member(group: StreamsGroup, member: StreamsMember, names: Names) -> dict[str, Any]:
    offsets = group.task_offsets.get(member.member_id, TaskOffsets())
    printed: dict[str, Any] = {
        **head_of_member(member, names),
        "process": member.process,
        "topology_epoch": member.topology_epoch,
        "assigned": _kinds(member.assigned.without_epochs()),
        "revoking": _kinds(member.revoking.without_epochs()),
        "target": _kinds(group.target(member.member_id)),
        "task_epochs": _nested((*member.assigned.active.items(), *member.revoking.active.items())),
    }
    rest = {
        "instance": member.instance,
        "rack": member.rack,
        "endpoint": None if member.endpoint is None else list(member.endpoint),
        "tags": dict(member.tags) or None,
        "task_offsets": _nested(offsets.offsets.items()) or None,
        "task_end_offsets": _nested(offsets.end_offsets.items()) or None,
    }
    return printed | {name: value for name, value in rest.items() if value is not None}


def _kinds(tasks: Tasks) -> dict[str, Any]:
    """Without what is empty."""
    return {kind: _by_subtopology(listed(one)) for kind, one in zip(_KINDS, tasks, strict=True) if one}


def _nested(entries: Iterable[tuple[Task, int]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (name, number), value in entries:
        nested.setdefault(name, {})[str(number)] = value
    return nested
