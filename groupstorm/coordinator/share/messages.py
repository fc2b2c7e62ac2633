"""Requests and responses of share groups, as plain values (`coordinator.messages`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from groupstorm.coordinator.errors import Error


class ShareGroupHeartbeat(NamedTuple):
    """ShareGroupHeartbeat 1 (KIP-932): join (epoch 0), heartbeat, leave (-1).

    None means: as in the last request.
    """

    group: str
    member_id: str
    member_epoch: int
    rack: str | None = None
    topics: tuple[str, ...] | None = None
    version: int = 1
    client_id: str = ""
    client_host: str = "/127.0.0.1"


class ShareGroupHeartbeatResponse(NamedTuple):
    """``assignment``: topic id -> partitions; None: it has not changed."""

    error: Error
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Mapping[UUID, tuple[int, ...]] | None = None
    error_message: str | None = None


class DescribeShareGroup(NamedTuple):
    """One group of a ShareGroupDescribe 1 request."""

    group: str
    version: int = 1


class DescribedShareMember(NamedTuple):
    """``assignment``: topic name -> partitions."""

    member_id: str
    rack: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    assignment: Mapping[str, tuple[int, ...]]


class DescribeShareGroupResponse(NamedTuple):
    error: Error
    group: str
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedShareMember, ...] = ()
    error_message: str | None = None


class ListSharePartitions(NamedTuple):
    """Ask for the partitions of a group whose state is initialised (for DescribeShareGroupOffsets)."""

    group: str
    version: int = 1


class ListSharePartitionsResponse(NamedTuple):
    """``partitions``: by topic id."""

    error: Error
    partitions: Mapping[UUID, Sequence[int]] = {}


class AlterShareGroupOffsets(NamedTuple):
    """AlterShareGroupOffsets 0. ``topics``: topic name -> partition -> its new start offset."""

    group: str
    topics: Mapping[str, Mapping[int, int]]
    version: int = 0


class AlterShareGroupOffsetsResponse(NamedTuple):
    """``partitions``: topic name, number, error."""

    error: Error
    partitions: tuple[tuple[str, int, Error], ...] = ()
    error_message: str | None = None


class DeleteShareGroupOffsets(NamedTuple):
    """DeleteShareGroupOffsets 0: of all partitions of topics."""

    group: str
    topics: tuple[str, ...]
    version: int = 0


class DeleteShareGroupOffsetsResponse(NamedTuple):
    """``topics``: name, error, and a sentence about it."""

    error: Error
    topics: tuple[tuple[str, Error, str | None], ...] = ()
    error_message: str | None = None
