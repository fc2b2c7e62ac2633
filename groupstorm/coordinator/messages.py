"""Requests and responses of the group protocols, as plain values.

One type per request and per response, independent of the version on the wire:
a request carries its ``version`` because Kafka's semantics depend on it, and a
response holds the coordinator's own values *before* they are cut to what that
version can carry. Durations are milliseconds. Field names are Kafka's.

They are named tuples because storms make millions of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from groupstorm.coordinator.errors import Error
from groupstorm.coordinator.share.messages import (
    AlterShareGroupOffsets,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsets,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroup,
    DescribeShareGroupResponse,
    ListSharePartitions,
    ListSharePartitionsResponse,
    ShareGroupHeartbeat,
    ShareGroupHeartbeatResponse,
)
from groupstorm.coordinator.streams.messages import (
    DescribeStreamsGroup,
    DescribeStreamsGroupResponse,
    StreamsGroupHeartbeat,
    StreamsGroupHeartbeatResponse,
    UpdateTopologyDescription,
    UpdateTopologyDescriptionResponse,
)

#: An empty member id in a request: "I have none yet" (JoinGroupRequest.UNKNOWN_MEMBER_ID).
NO_MEMBER_ID = ""
#: An empty generation: the request does not come from a member (JoinGroupRequest.UNKNOWN_GENERATION_ID).
NO_GENERATION = -1


class JoinGroup(NamedTuple):
    """JoinGroup 0-9. ``rebalance_timeout_ms`` of a version 0 request is its session timeout."""

    group: str
    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    version: int
    client_id: str
    client_host: str = "/127.0.0.1"
    reason: str | None = None


class JoinGroupMember(NamedTuple):
    """One member as the leader sees it: the metadata is that of the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(NamedTuple):
    """``members`` is filled for the leader only, in the order of Kafka's member map."""

    error: Error
    generation: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    leader: str = ""
    protocol_type: str | None = None
    protocol: str | None = ""
    skip_assignment: bool = False
    members: tuple[JoinGroupMember, ...] = ()


class SyncGroup(NamedTuple):
    """SyncGroup 0-5; ``assignments`` (member id -> bytes) is the leader's."""

    group: str
    member_id: str
    group_instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    version: int
    client_id: str = ""


class SyncGroupResponse(NamedTuple):
    error: Error
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Heartbeat(NamedTuple):
    """Heartbeat 0-4."""

    group: str
    member_id: str
    group_instance_id: str | None
    generation: int
    version: int
    client_id: str = ""


class HeartbeatResponse(NamedTuple):
    error: Error


class LeavingMember(NamedTuple):
    """A member that leaves, by member id, or (static members) by instance id with an empty member id."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroup(NamedTuple):
    """LeaveGroup 0-5: below version 3 exactly one member."""

    group: str
    members: tuple[LeavingMember, ...]
    version: int
    client_id: str = ""


class LeftMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error: Error


class LeaveGroupResponse(NamedTuple):
    error: Error
    members: tuple[LeftMember, ...] = ()


class CommittedOffset(NamedTuple):
    """A committed position; without leader epoch or metadata these are -1 and ""."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class OffsetCommit(NamedTuple):
    """OffsetCommit 2-9 (10 by topic id is a matter of the wire): topic -> partition -> offset."""

    group: str
    member_id: str
    group_instance_id: str | None
    generation: int
    offsets: Mapping[str, Mapping[int, CommittedOffset]]
    version: int
    client_id: str = ""
    retention_ms: int = -1
    """The time for which versions 2-4 want the offsets kept; -1: as the broker is set."""


#: First version of TxnOffsetCommit that is answered GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH as such.
TXN_NEW_ERRORS_SINCE = 6


class TxnOffsetCommit(NamedTuple):
    """TxnOffsetCommit 0-6: offsets that count when the producer's transaction is committed (KIP-98, KIP-447).

    Its response is an `OffsetCommitResponse`.
    """

    group: str
    producer_id: int
    member_id: str
    group_instance_id: str | None
    generation: int
    offsets: Mapping[str, Mapping[int, CommittedOffset]]
    version: int
    client_id: str = ""


class OffsetCommitResponse(NamedTuple):
    """One error per partition, in the order of the request."""

    partitions: tuple[tuple[str, int, Error], ...]


class OffsetFetch(NamedTuple):
    """OffsetFetch of one group; ``topics`` None asks for every partition that has an offset."""

    group: str
    topics: Mapping[str, tuple[int, ...]] | None
    version: int
    member_id: str | None = None
    member_epoch: int = NO_GENERATION
    require_stable: bool = False


class OffsetFetchResponse(NamedTuple):
    """A partition without committed offset has offset -1."""

    error: Error
    partitions: tuple[tuple[str, int, CommittedOffset, Error], ...] = ()


class OffsetDelete(NamedTuple):
    """OffsetDelete 0: delete the committed offsets of these partitions (KIP-496)."""

    group: str
    topics: Mapping[str, tuple[int, ...]]
    client_id: str = ""
    version: int = 0


class OffsetDeleteResponse(NamedTuple):
    """``error`` is the group's; else one error per partition, in the order of the request."""

    error: Error
    partitions: tuple[tuple[str, int, Error], ...] = ()


class DeleteGroup(NamedTuple):
    """One group of a DeleteGroups 0-2 request."""

    group: str
    client_id: str = ""
    version: int = 2


class DeleteGroupResponse(NamedTuple):
    error: Error


class DescribeGroup(NamedTuple):
    """One group of a DescribeGroups 0-6 request."""

    group: str
    version: int


class DescribedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribeGroupResponse(NamedTuple):
    error: Error
    group: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    error_message: str | None = None


class ListGroups(NamedTuple):
    """ListGroups 0-5; empty filters let everything pass."""

    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    version: int = 5


class ListedGroup(NamedTuple):
    group: str
    protocol_type: str
    state: str
    group_type: str


class ListGroupsResponse(NamedTuple):
    error: Error
    groups: tuple[ListedGroup, ...] = ()


class ConsumerGroupHeartbeat(NamedTuple):
    """ConsumerGroupHeartbeat 0-1 (KIP-848): join (epoch 0), heartbeat, leave (-1), leave for a while (-2).

    None, and -1 for the rebalance timeout, mean: as in the last request. ``owned``: the partitions that the
    member owns, by topic id.
    """

    group: str
    member_id: str
    member_epoch: int
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: tuple[tuple[UUID, tuple[int, ...]], ...] | None = None
    version: int = 1
    client_id: str = ""
    client_host: str = "/127.0.0.1"


class ConsumerGroupHeartbeatResponse(NamedTuple):
    """``assignment``: topic id -> partitions; None: it has not changed."""

    error: Error
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[UUID, tuple[int, ...]] | None = None
    error_message: str | None = None


class DescribeConsumerGroup(NamedTuple):
    """One group of a ConsumerGroupDescribe 0-1 request."""

    group: str
    version: int = 1


class DescribedConsumerMember(NamedTuple):
    """``assignment`` and ``target``: topic name -> partitions; ``is_classic``: it speaks the classic
    protocol."""

    member_id: str
    instance: str | None
    rack: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    assignment: Mapping[str, tuple[int, ...]]
    target: Mapping[str, tuple[int, ...]]
    is_classic: bool


class DescribeConsumerGroupResponse(NamedTuple):
    error: Error
    group: str
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    error_message: str | None = None


#: Heartbeats to groups of the newer protocols whose members may be static, and the answers to them.
StaticHeartbeat = ConsumerGroupHeartbeat | StreamsGroupHeartbeat
StaticHeartbeatResponse = ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse

#: Requests that are about one group.
GroupRequest = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | TxnOffsetCommit
    | OffsetFetch
    | OffsetDelete
    | DeleteGroup
    | DescribeGroup
    | ConsumerGroupHeartbeat
    | DescribeConsumerGroup
    | StreamsGroupHeartbeat
    | DescribeStreamsGroup
    | UpdateTopologyDescription
    | ShareGroupHeartbeat
    | DescribeShareGroup
    | ListSharePartitions
    | AlterShareGroupOffsets
    | DeleteShareGroupOffsets
)
Request = GroupRequest | ListGroups
Response = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | OffsetDeleteResponse
    | DeleteGroupResponse
    | DescribeGroupResponse
    | ListGroupsResponse
    | ConsumerGroupHeartbeatResponse
    | DescribeConsumerGroupResponse
    | StreamsGroupHeartbeatResponse
    | DescribeStreamsGroupResponse
    | UpdateTopologyDescriptionResponse
    | ShareGroupHeartbeatResponse
    | DescribeShareGroupResponse
    | ListSharePartitionsResponse
    | AlterShareGroupOffsetsResponse
    | DeleteShareGroupOffsetsResponse
)
