"""Answers and states as JSON values, before an answer is cut to the request's version."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from groupstorm.coordinator.classic.group import ClassicGroup
from groupstorm.coordinator.listing import CLASSIC_TYPE
from groupstorm.coordinator.messages import (
    DeleteGroupResponse,
    DescribeGroupResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    Response,
    SyncGroupResponse,
)
from groupstorm.coordinator.script.names import Names


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def ids_in_response(response: Response) -> Iterator[str]:
    """The member ids in an answer."""
    match response:
        case JoinGroupResponse():
            yield response.member_id
            yield response.leader
            yield from (member.member_id for member in response.members)
        case LeaveGroupResponse() | DescribeGroupResponse():
            yield from (member.member_id for member in response.members)


def ids_in_groups(groups: Iterable[ClassicGroup]) -> Iterator[str]:
    """The member ids in the state of groups."""
    for group in groups:
        yield from group.members
        yield from group.pending_members
        yield from group.static_members.values()
        if group.leader is not None:
            yield group.leader


def print_response(response: Response, names: Names) -> dict[str, Any]:
    """The fields of an answer that follow t, step, kind and as."""
    match response:
        case JoinGroupResponse():
            return _join(response, names)
        case SyncGroupResponse():
            return {
                "error": response.error.name,
                "protocol_type": response.protocol_type,
                "protocol": response.protocol,
                "assignment": _base64(response.assignment),
            }
        case LeaveGroupResponse():
            members = [
                [names.name(member.member_id), member.group_instance_id, member.error.name]
                for member in response.members
            ]
            return {"error": response.error.name, "members": members}
        case DescribeGroupResponse():
            return _describe(response, names)
        case OffsetCommitResponse() | OffsetFetchResponse() | OffsetDeleteResponse():
            return _offsets(response)
        case HeartbeatResponse() | ListGroupsResponse() | DeleteGroupResponse():
            return {"error": response.error.name}


def _offsets(response: OffsetCommitResponse | OffsetFetchResponse | OffsetDeleteResponse) -> dict[str, Any]:
    if not isinstance(response, OffsetFetchResponse):
        return {"partitions": [[*place, error.name] for *place, error in response.partitions]}
    partitions = [
        [topic, number, committed.offset, error.name]
        for topic, number, committed, error in response.partitions
    ]
    return {"error": response.error.name, "partitions": partitions}


def _join(response: JoinGroupResponse, names: Names) -> dict[str, Any]:
    order = [names.name(member.member_id) for member in response.members]
    members = {
        name: [name, member.group_instance_id, _base64(member.metadata)]
        for name, member in zip(order, response.members, strict=True)
    }
    return {
        "error": response.error.name,
        "generation": response.generation,
        "member": names.name(response.member_id),
        "leader": names.name(response.leader),
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "skip_assignment": response.skip_assignment,
        "members": [members[name] for name in sorted(members, key=names.key)],
        "order": order,
    }


def _describe(response: DescribeGroupResponse, names: Names) -> dict[str, Any]:
    members = [
        [
            names.name(member.member_id),
            member.group_instance_id,
            member.client_id,
            _base64(member.metadata),
            _base64(member.assignment),
        ]
        for member in response.members
    ]
    members.sort(key=lambda member: names.key(str(member[0])))
    return {
        "error": response.error.name,
        "state": response.state,
        "protocol_type": response.protocol_type,
        "protocol": response.protocol,
        "members": members,
    }


def print_group(group: ClassicGroup, names: Names) -> dict[str, Any]:
    """A group's state."""

    def sorted_names(ids: Iterable[str]) -> list[str]:
        return sorted(map(names.name, ids), key=names.key)

    members = group.members.values()
    return {
        "type": CLASSIC_TYPE,
        "state": group.state.value,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": None if group.leader is None else names.name(group.leader),
        "members": sorted_names(member.member_id for member in members),
        "joining": sorted_names(member.member_id for member in members if member.join is not None),
        "syncing": sorted_names(member.member_id for member in members if member.sync is not None),
        "pending": sorted_names(group.pending_members),
        "static": {instance: names.name(member) for instance, member in sorted(group.static_members.items())},
    }
