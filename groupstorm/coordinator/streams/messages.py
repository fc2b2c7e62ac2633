"""Requests and responses of streams groups, as plain values (`coordinator.messages`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from groupstorm.assignors.streams.groups import Task, TaskIds
from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.streams.member import StreamsMember, Tasks
from groupstorm.coordinator.streams.topology import TopicInfo, Topology


class StreamsGroupHeartbeat(NamedTuple):
    """StreamsGroupHeartbeat 0-1 (KIP-1071): join (epoch 0), heartbeat, leave (-1), leave for a while (-2).

    None, and -1 for the rebalance timeout, mean: as in the last request. ``active``, ``standby``, ``warmup``:
    the tasks that the member owns; task offsets: subtopology, task and offset.
    """

    group: str
    member_id: str
    member_epoch: int
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    process: str | None = None
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    topology: Topology | None = None
    active: TaskIds | None = None
    standby: TaskIds | None = None
    warmup: TaskIds | None = None
    task_offsets: tuple[tuple[str, int, int], ...] | None = None
    task_end_offsets: tuple[tuple[str, int, int], ...] | None = None
    shutdown: bool = False
    endpoint_epoch: int = -1
    version: int = 1
    client_id: str = ""
    client_host: str = "/127.0.0.1"


#: Host, port, and partitions by topic: of the active tasks, and of the standby and warm-up tasks.
EndpointPartitions = tuple[str, int, Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]]


class StreamsGroupHeartbeatResponse(NamedTuple):
    """``statuses``: code and detail; tasks and endpoints None: they have not changed; ``to_create``: internal
    topics that the broker is asked to create."""

    error: Error
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[tuple[int, str], ...] = ()
    active: TaskIds | None = None
    standby: TaskIds | None = None
    warmup: TaskIds | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    to_create: Mapping[str, TopicInfo] = {}
    acceptable_recovery_lag: int = -1
    task_offset_interval_ms: int = 0
    description_required: bool = False
    error_message: str | None = None


class DescribeStreamsGroup(NamedTuple):
    """One group of a StreamsGroupDescribe 0-1 request."""

    group: str
    with_description: bool = False
    version: int = 1


class DescribedStreamsMember(NamedTuple):
    """A member with its target and the offsets that it has reported of its tasks."""

    member: StreamsMember
    target: Tasks
    task_offsets: Mapping[Task, int]
    task_end_offsets: Mapping[Task, int]


class DescriptionNode(NamedTuple):
    """A node of a topology. ``kind``: 1 a source, which reads topics, 2 a processor with stores, 3 a sink."""

    name: str
    kind: int
    topics: tuple[str, ...] = ()
    sink: str | None = None
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class TopologyDescription(NamedTuple):
    """The nodes of each subtopology, and of each global store the source and the processor (KIP-1331)."""

    subtopologies: tuple[tuple[str, tuple[DescriptionNode, ...]], ...]
    global_stores: tuple[tuple[DescriptionNode, DescriptionNode], ...]


class DescriptionStatus(IntEnum):
    """Whether a description of a group holds that of its topology."""

    NOT_REQUESTED = 0
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class DescribeStreamsGroupResponse(NamedTuple):
    """``topology``: with the numbers of partitions that are decided."""

    error: Error
    group: str
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: tuple[DescribedStreamsMember, ...] = ()
    assignor: str | None = None
    description_status: DescriptionStatus = DescriptionStatus.NOT_REQUESTED
    description: TopologyDescription | None = None
    error_message: str | None = None


class UpdateTopologyDescription(NamedTuple):
    """StreamsGroupTopologyDescriptionUpdate 0 (KIP-1331)."""

    group: str
    member_id: str
    topology_epoch: int
    description: TopologyDescription | None
    client_id: str = ""
    version: int = 0


class UpdateTopologyDescriptionResponse(NamedTuple):
    error: Error
    error_message: str | None = None
