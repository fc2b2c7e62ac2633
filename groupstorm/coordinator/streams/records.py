"""The records of streams groups: each is one entry of a group's state; None in its value is a tombstone.

Kafka: StreamsGroupMemberMetadata, StreamsGroupCurrentMemberAssignment, StreamsGroupTargetAssignmentMember,
StreamsGroupTargetAssignmentMetadata, StreamsGroupMetadata, StreamsGroupTopology.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from groupstorm.coordinator.modern.member import TaskState
from groupstorm.coordinator.streams.member import HeldTasks, StreamsMember, Tasks
from groupstorm.coordinator.streams.topology import Topology


class MemberMetadata(NamedTuple):
    """The part of a member that its own requests determine."""

    instance: str | None
    rack: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topology_epoch: int
    process: str
    endpoint: tuple[str, int] | None
    tags: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, member: StreamsMember) -> MemberMetadata:
        return cls(*(getattr(member, name) for name in cls._fields))

    def put_into(self, member: StreamsMember) -> StreamsMember:
        return replace(member, **self._asdict())


class CurrentTasks(NamedTuple):
    """The part of a member that reconciliation determines."""

    epoch: int
    previous_epoch: int
    state: TaskState
    assigned: HeldTasks
    revoking: HeldTasks

    @classmethod
    def of(cls, member: StreamsMember) -> CurrentTasks:
        return cls(*(getattr(member, name) for name in cls._fields))


class GroupFacts(NamedTuple):
    """The facts about the whole group.

    ``validated_epoch``: of the topology whose topics are as it needs them; ``configs``: of the assignment;
    ``stored_epoch`` and ``failed_epoch``: of the topology whose description the plugin holds or refused.
    """

    epoch: int = 1
    metadata_hash: int = 0
    validated_epoch: int = -1
    configs: tuple[tuple[str, str], ...] = ()
    stored_epoch: int = -1
    failed_epoch: int = -1


class StreamsMemberRecord(NamedTuple):
    """A member's metadata."""

    group: str
    member_id: str
    value: MemberMetadata | None


class StreamsCurrentRecord(NamedTuple):
    """A member's current tasks."""

    group: str
    member_id: str
    value: CurrentTasks | None


class StreamsTargetRecord(NamedTuple):
    """A member's target."""

    group: str
    member_id: str
    value: Tasks | None


class StreamsTargetEpochRecord(NamedTuple):
    """The group epoch for which the targets were computed, and when (-1: never)."""

    group: str
    value: int | None
    computed_at_ms: int = -1


class StreamsGroupRecord(NamedTuple):
    """The group's epoch and what else is true of all its members."""

    group: str
    value: GroupFacts | None


class StreamsTopologyRecord(NamedTuple):
    """The group's topology."""

    group: str
    value: Topology | None


StreamsRecord = (
    StreamsMemberRecord
    | StreamsCurrentRecord
    | StreamsTargetRecord
    | StreamsTargetEpochRecord
    | StreamsGroupRecord
    | StreamsTopologyRecord
)
