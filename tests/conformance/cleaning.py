"""Removal of what the suite has made on somebody's cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from groupstorm.clients.wire.admin import delete_group, delete_topics
from groupstorm.clients.wire.cluster import ClusterClient
from groupstorm.clients.wire.connection import ClientApi, RequestTypes
from groupstorm.problems import InputError

_DESCRIBE_GROUPS = ClientApi(15, "DescribeGroups", 1, 5)
_LEAVE_GROUP = ClientApi(13, "LeaveGroup", 3, 5)
_TIMEOUT_MS = 30_000
_PATIENCE_S, _POLL_S = 60.0, 0.5


async def clean_up(cluster: ClusterClient, groups: Iterable[str], topics: Iterable[str]) -> None:
    """Delete them; members whose sessions have not ended are removed first. Raises InputError."""
    groups = list(groups)
    for group in groups:
        await _remove_members(cluster, group)
    for group in groups:
        await _delete(cluster, group)
    await delete_topics(cluster, list(topics))


async def _delete(cluster: ClusterClient, group: str) -> None:
    """A group waits for members that were given an id, which nobody can remove: for as long as a session."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await delete_group(cluster, group)
        except InputError:
            if time.monotonic() > deadline_s:
                raise
        await asyncio.sleep(_POLL_S)


async def _remove_members(cluster: ClusterClient, group: str) -> None:
    found = await cluster.find_coordinator(group)
    connection = await cluster.connect(found.endpoint)

    def describe(types: RequestTypes) -> Any:
        return types.make(types.root.__name__, groups=(group,), include_authorized_operations=False)

    def leave(types: RequestTypes) -> Any:
        members = tuple(
            types.make("MemberIdentity", member_id=one.member_id, group_instance_id=None, reason=None)
            for one in described.groups[0].members
        )
        return types.make(types.root.__name__, group_id=group, members=members)

    try:
        described = await connection.ask(_DESCRIBE_GROUPS, 5, describe, _TIMEOUT_MS)
        if described.groups[0].members:
            await connection.ask(_LEAVE_GROUP, 5, leave, _TIMEOUT_MS)
    finally:
        connection.close()
